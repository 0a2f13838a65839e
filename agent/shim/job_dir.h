// Removes the job's folder at the end. Follows no link, leaves other file systems and other users'
// folders alone.
#pragma once

#include <string>

namespace hvd {

// True if the folder is gone. Only an absolute path of a directory that belongs to us is touched.
bool remove_job_dir(const std::string& path);

}  // namespace hvd
