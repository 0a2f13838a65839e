// Nothing but the place where training/torch.h is precompiled.
#include "training/torch.h"
