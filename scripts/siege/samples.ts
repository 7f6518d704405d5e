/** How long one request took, and what was wrong with its answer. */
export interface Sample {
  readonly ms: number;
  readonly problem: string | null;
}

/** What the watcher saw in one phase. */
export interface Seen {
  readonly healthz: readonly Sample[];
  readonly checks: readonly Sample[];
  /** An idle server beside the service: what the machine alone costs. */
  readonly control: readonly Sample[];
}

/** What the watcher is told. It answers `end` with a `Seen`. */
export type WatcherOrder =
  | { readonly kind: "begin"; readonly url: string; readonly controlUrl: string; readonly keys: readonly string[] }
  | { readonly kind: "end" };

/** The value that `share` (0 to 1) of all samples do not exceed; NaN of none. */
export const percentile = (samples: readonly Sample[], share: number): number => {
  const sorted = samples.map(({ ms }) => ms).toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))] ?? Number.NaN;
};

/** The problems of all samples and how often each occurred; empty when there was none. */
export const problemsOf = (samples: readonly Sample[]): string =>
  [...Map.groupBy(samples, ({ problem }) => problem)]
    .flatMap(([problem, group]) => (problem === null ? [] : [`${group.length} × ${problem}`]))
    .join(", ");

/** How many samples have a problem. */
export const countProblems = (samples: readonly Sample[]): number =>
  samples.filter(({ problem }) => problem !== null).length;
