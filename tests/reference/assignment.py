"""Exact rectangular assignment: SciPy's solver where it is installed, else our own."""
import numpy as np

try:
    from scipy.optimize import linear_sum_assignment
except ImportError:
    linear_sum_assignment = None


def shortest_augmenting_paths(cost):
    """Assigns every row of an (n, m) matrix, n <= m, to a column of its own; O(n^2 m)."""
    n, m = cost.shape
    row_price, column_price = np.zeros(n), np.zeros(m)
    row_of = np.full(m, -1)
    for row in range(n):
        distance = np.full(m, np.inf)
        previous = np.full(m, -1)  # the column before on the shortest path
        done = np.zeros(m, bool)
        current, at, base = row, -1, 0.0
        while True:
            reduced = base + cost[current] - row_price[current] - column_price
            better = ~done & (reduced < distance)
            distance[better] = reduced[better]
            previous[better] = at
            at = int(np.argmin(np.where(done, np.inf, distance)))
            base = distance[at]
            done[at] = True
            if row_of[at] < 0:
                break
            current = row_of[at]
        scanned = np.flatnonzero(done)
        slack = base - distance[scanned]
        owners = row_of[scanned]
        column_price[scanned] -= slack
        row_price[owners[owners >= 0]] += slack[owners >= 0]
        row_price[row] += base
        while at >= 0:
            before = previous[at]
            row_of[at] = row if before < 0 else row_of[before]
            at = before
    columns = np.flatnonzero(row_of >= 0)
    result = np.empty(n, dtype=np.int64)
    result[row_of[columns]] = columns
    return result


def match(cost):
    """cost (Q, G). The query of every ground truth, -1 for those left over when G > Q."""
    queries, truths = cost.shape
    result = np.full(truths, -1, dtype=np.int64)
    if not truths or not queries:
        return result
    cost = np.asarray(cost, dtype=np.float64)
    if linear_sum_assignment is not None:
        rows, columns = linear_sum_assignment(cost)
        result[columns] = rows
    elif truths <= queries:
        result[:] = shortest_augmenting_paths(np.ascontiguousarray(cost.T))
    else:
        result[shortest_augmenting_paths(cost)] = np.arange(queries)
    return result
