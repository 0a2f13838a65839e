// How ranks are dealt out to hosts (--rank-order).
#pragma once

namespace hvd {

// kBlock: a host's ranks follow one another, hosts in the order given. kCyclic: one rank for each
// host in turn, until all slots are taken.
enum class RankOrder { kBlock, kCyclic };

}  // namespace hvd
