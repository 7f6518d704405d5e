/** Takes what is counted and measured of DNS queries and SMTP sessions. */
export interface NetworkCounters {
  readonly dnsQueries: Counted<"type" | "outcome" | "cached">;
  readonly dnsSeconds: Measured;
  readonly openSeconds: { observe(labels: OpenLabels, seconds: number): void };
  readonly sessionSeconds: Measured;
  readonly failures: Counted<"stage" | "kind">;
  readonly replies: Counted<"command" | "class">;
}

type Labels<Label extends string> = Readonly<Record<Label, string>>;
type OpenLabels = Labels<"result">;

interface Counted<Label extends string> {
  inc(labels: Labels<Label>, by?: number): void;
}

interface Measured {
  observe(seconds: number): void;
}

class TalliedCounter<Label extends string> implements Counted<Label> {
  readonly #sums = new Map<string, { readonly labels: Labels<Label>; by: number }>();

  inc(labels: Labels<Label>, by = 1): void {
    const key = Object.values(labels).join(" ");
    const sum = this.#sums.get(key);
    if (sum === undefined) this.#sums.set(key, { labels, by });
    else sum.by += by;
  }

  take(): ReadonlyArray<readonly [labels: Labels<Label>, by: number]> {
    const sums = [...this.#sums.values()].map(({ labels, by }) => [labels, by] as const);
    this.#sums.clear();
    return sums;
  }
}

class TalliedSeconds implements Measured {
  #seconds: number[] = [];

  observe(seconds: number): void {
    this.#seconds.push(seconds);
  }

  take(): readonly number[] {
    const seconds = this.#seconds;
    this.#seconds = [];
    return seconds;
  }
}

/** What a thread without metrics counted and measured, for the thread that has them. Somebody takes it regularly. */
export class NetworkTally implements NetworkCounters {
  readonly dnsQueries = new TalliedCounter<"type" | "outcome" | "cached">();
  readonly failures = new TalliedCounter<"stage" | "kind">();
  readonly replies = new TalliedCounter<"command" | "class">();
  readonly dnsSeconds = new TalliedSeconds();
  readonly sessionSeconds = new TalliedSeconds();
  readonly #opened = new TalliedSeconds();
  readonly #failed = new TalliedSeconds();
  readonly openSeconds = {
    observe: ({ result }: OpenLabels, seconds: number): void =>
      (result === "opened" ? this.#opened : this.#failed).observe(seconds),
  };

  /** Everything since the last call, as plain data. */
  take() {
    return {
      dnsQueries: this.dnsQueries.take(),
      failures: this.failures.take(),
      replies: this.replies.take(),
      dnsSeconds: this.dnsSeconds.take(),
      sessionSeconds: this.sessionSeconds.take(),
      openSeconds: { opened: this.#opened.take(), failed: this.#failed.take() },
    };
  }
}

export type TalliedNetwork = ReturnType<NetworkTally["take"]>;

/** Adds a tally to other counters. */
export const addTally = (counters: NetworkCounters, tally: TalliedNetwork): void => {
  for (const [labels, by] of tally.dnsQueries) counters.dnsQueries.inc(labels, by);
  for (const [labels, by] of tally.failures) counters.failures.inc(labels, by);
  for (const [labels, by] of tally.replies) counters.replies.inc(labels, by);
  for (const seconds of tally.dnsSeconds) counters.dnsSeconds.observe(seconds);
  for (const seconds of tally.sessionSeconds) counters.sessionSeconds.observe(seconds);
  for (const result of ["opened", "failed"] as const)
    for (const seconds of tally.openSeconds[result]) counters.openSeconds.observe({ result }, seconds);
};
