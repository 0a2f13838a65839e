// The protocol's messages under their short name: hvd::v1::Hello.
#pragma once

// Filled by what is generated from proto/hvdrun/v1.
namespace hvdrun::v1 {}

namespace hvd {
namespace v1 = ::hvdrun::v1;
}  // namespace hvd
