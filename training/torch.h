// All of torch that training/ uses, precompiled once. Not <torch/torch.h>: that costs twice the
// time in every file and brings modules and optimisers that are not used here.
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/generated/variable_factories.h>
#include <torch/csrc/autograd/variable.h>
