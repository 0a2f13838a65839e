// Small matrices of the camera geometry in fp64: rigid transforms, projections, quaternions. Pure
// functions, any thread. fp64 throughout: global coordinates are of order 1e3 m and are subtracted
// from each other, so fp32 would lose a tenth of a millimetre before the first layer.
#pragma once

#include <array>

namespace hvd::petrv2 {

using Matrix3 = std::array<double, 9>;   // row-major
using Matrix4 = std::array<double, 16>;  // row-major; T[a<-b] takes coordinates in b to a
using Vector3 = std::array<double, 3>;

// w, x, y, z; need not be of unit length.
struct Quaternion {
  double w = 1;
  double x = 0;
  double y = 0;
  double z = 0;
};

inline constexpr Matrix4 kIdentity4 = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};

[[nodiscard]] Matrix3 multiply(const Matrix3& a, const Matrix3& b);
[[nodiscard]] Matrix4 multiply(const Matrix4& a, const Matrix4& b);

// The rotation matrix of q / |q|.
[[nodiscard]] Matrix3 rotation_matrix(const Quaternion& q);

// [R t; 0 1].
[[nodiscard]] Matrix4 rigid_transform(const Matrix3& rotation, const Vector3& translation);
[[nodiscard]] Matrix4 rigid_transform(const Quaternion& rotation, const Vector3& translation);

// The inverse of [R t; 0 1] with an orthonormal R: [R' -R't; 0 1], without any division.
[[nodiscard]] Matrix4 inverse_rigid(const Matrix4& m);

// The inverse of any regular matrix (Gauss-Jordan with row pivots). A singular one gives non-finite
// entries.
[[nodiscard]] Matrix4 inverse(const Matrix4& m);

// [K 0; 0 1].
[[nodiscard]] Matrix4 pad_to_4x4(const Matrix3& m);

// m (x y z 1)' without the fourth component.
[[nodiscard]] Vector3 transform_point(const Matrix4& m, const Vector3& point);

}  // namespace hvd::petrv2
