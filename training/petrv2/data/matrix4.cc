#include "training/petrv2/data/matrix4.h"

#include <cmath>
#include <cstddef>
#include <utility>

namespace hvd::petrv2 {
namespace {

template <std::size_t N>
std::array<double, N * N> multiply_square(const std::array<double, N * N>& a,
                                          const std::array<double, N * N>& b) {
  std::array<double, N * N> product{};
  for (std::size_t row = 0; row < N; ++row) {
    for (std::size_t column = 0; column < N; ++column) {
      double sum = 0;
      for (std::size_t k = 0; k < N; ++k) sum += a[row * N + k] * b[k * N + column];
      product[row * N + column] = sum;
    }
  }
  return product;
}

std::size_t pivot_row(const Matrix4& m, std::size_t column) {
  std::size_t best = column;
  for (std::size_t row = column + 1; row < 4; ++row) {
    if (std::abs(m[row * 4 + column]) > std::abs(m[best * 4 + column])) best = row;
  }
  return best;
}

void swap_rows(Matrix4& m, std::size_t a, std::size_t b) {
  for (std::size_t k = 0; k < 4; ++k) std::swap(m[a * 4 + k], m[b * 4 + k]);
}

void scale_row(Matrix4& m, std::size_t row, double factor) {
  for (std::size_t k = 0; k < 4; ++k) m[row * 4 + k] *= factor;
}

void subtract_row(Matrix4& m, std::size_t row, std::size_t from, double factor) {
  for (std::size_t k = 0; k < 4; ++k) m[row * 4 + k] -= factor * m[from * 4 + k];
}

}  // namespace

Matrix3 multiply(const Matrix3& a, const Matrix3& b) { return multiply_square<3>(a, b); }
Matrix4 multiply(const Matrix4& a, const Matrix4& b) { return multiply_square<4>(a, b); }

Matrix3 rotation_matrix(const Quaternion& q) {
  const double n = std::sqrt(q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z);
  const double w = q.w / n;
  const double x = q.x / n;
  const double y = q.y / n;
  const double z = q.z / n;
  return {1 - 2 * (y * y + z * z), 2 * (x * y - w * z),     2 * (x * z + w * y),
          2 * (x * y + w * z),     1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
          2 * (x * z - w * y),     2 * (y * z + w * x),     1 - 2 * (x * x + y * y)};
}

Matrix4 rigid_transform(const Matrix3& r, const Vector3& t) {
  return {r[0], r[1], r[2], t[0], r[3], r[4], r[5], t[1], r[6], r[7], r[8], t[2], 0, 0, 0, 1};
}

Matrix4 rigid_transform(const Quaternion& rotation, const Vector3& translation) {
  return rigid_transform(rotation_matrix(rotation), translation);
}

Matrix4 inverse_rigid(const Matrix4& m) {
  const Matrix3 transposed = {m[0], m[4], m[8], m[1], m[5], m[9], m[2], m[6], m[10]};
  Vector3 translation{};
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t k = 0; k < 3; ++k) translation[row] -= transposed[row * 3 + k] * m[k * 4 + 3];
  }
  return rigid_transform(transposed, translation);
}

Matrix4 inverse(const Matrix4& m) {
  Matrix4 left = m;
  Matrix4 right = kIdentity4;
  for (std::size_t column = 0; column < 4; ++column) {
    const std::size_t pivot = pivot_row(left, column);
    swap_rows(left, column, pivot);
    swap_rows(right, column, pivot);
    const double factor = 1 / left[column * 4 + column];
    scale_row(left, column, factor);
    scale_row(right, column, factor);
    for (std::size_t row = 0; row < 4; ++row) {
      if (row == column) continue;
      const double amount = left[row * 4 + column];
      subtract_row(left, row, column, amount);
      subtract_row(right, row, column, amount);
    }
  }
  return right;
}

Matrix4 pad_to_4x4(const Matrix3& m) { return rigid_transform(m, {0, 0, 0}); }

Vector3 transform_point(const Matrix4& m, const Vector3& point) {
  Vector3 moved{};
  for (std::size_t row = 0; row < 3; ++row) {
    moved[row] = m[row * 4] * point[0] + m[row * 4 + 1] * point[1] + m[row * 4 + 2] * point[2] +
                 m[row * 4 + 3];
  }
  return moved;
}

}  // namespace hvd::petrv2
