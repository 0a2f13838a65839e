#include "agent/service_socket.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <filesystem>
#include <fstream>

#include "base/unix_address.h"

namespace hvd {
namespace {

using ::testing::HasSubstr;

struct stat folder_of(uid_t uid, mode_t mode) {
  struct stat info {};
  info.st_uid = uid;
  info.st_mode = S_IFDIR | mode;
  return info;
}

TEST(UnsafeFolder, IsAnotherUsersOrOpenToOthers) {
  EXPECT_FALSE(unsafe_folder(folder_of(7, 0700), 7));
  EXPECT_FALSE(unsafe_folder(folder_of(7, 0755), 7));
  EXPECT_FALSE(unsafe_folder(folder_of(0, 0755), 7));
  EXPECT_FALSE(unsafe_folder(folder_of(0, 01777), 7)) << "as /tmp";
  EXPECT_THAT(unsafe_folder(folder_of(8, 0700), 7).value_or(""), HasSubstr("belongs to user 8"));
  EXPECT_THAT(unsafe_folder(folder_of(7, 0775), 7).value_or(""), HasSubstr("mode 775"));
  EXPECT_THAT(unsafe_folder(folder_of(0, 0757), 7).value_or(""), HasSubstr("chmod go-w"));
}

class ServiceSocketTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(folder_.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path() const { return folder_ + "/agent.sock"; }
  [[nodiscard]] std::size_t num_files() const {
    const std::filesystem::directory_iterator files(folder_);
    return static_cast<std::size_t>(std::distance(begin(files), end(files)));
  }
  // A socket that was bound and at which nobody listens any more.
  void leave_dead_socket() const {
    const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_un address = unix_address(path());
    ASSERT_EQ(bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }

  std::string folder_ = "/tmp/hvd-service-socket-XXXXXX";
};

TEST_F(ServiceSocketTest, IsOursAloneAndGoesWithItsOwner) {
  {
    const auto socket = ServiceSocket::claim(path());
    ASSERT_TRUE(socket) << socket.error().message;
    EXPECT_EQ(std::filesystem::status(path()).permissions(), std::filesystem::perms(0600));
    EXPECT_EQ(num_files(), 1U);
  }
  EXPECT_EQ(num_files(), 0U);
}

TEST_F(ServiceSocketTest, TakesTheNameOfADeadOne) {
  leave_dead_socket();
  const auto socket = ServiceSocket::claim(path());
  ASSERT_TRUE(socket) << socket.error().message;
  EXPECT_EQ(num_files(), 1U);
}

TEST_F(ServiceSocketTest, LeavesALivingOneAlone) {
  const auto first = ServiceSocket::claim(path());
  ASSERT_TRUE(first);
  const auto second = ServiceSocket::claim(path());
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("is served by a process that lives"));
  EXPECT_EQ(num_files(), 1U);
}

TEST_F(ServiceSocketTest, RemovesOnlyItsOwn) {
  auto first = ServiceSocket::claim(path());
  ASSERT_TRUE(first);
  first->close();
  const auto second = ServiceSocket::claim(path());
  ASSERT_TRUE(second) << second.error().message;
  { const ServiceSocket gone = std::move(*first); }
  EXPECT_EQ(num_files(), 1U);
}

TEST_F(ServiceSocketTest, RefusesWhatIsNoSocketAndWhereOthersCanWrite) {
  std::ofstream(path()) << "text";
  const auto file = ServiceSocket::claim(path());
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message, HasSubstr("is there and no socket"));
  EXPECT_EQ(num_files(), 1U);
  ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
  const auto open = ServiceSocket::claim(path());
  ASSERT_FALSE(open);
  EXPECT_THAT(open.error().message, HasSubstr("can be changed by others"));
  EXPECT_FALSE(ServiceSocket::claim(folder_ + "/none/agent.sock"));
  EXPECT_FALSE(ServiceSocket::claim(folder_ + "/" + std::string(100, 'x')));
}

}  // namespace
}  // namespace hvd
