import type { CounterConfiguration } from "prom-client";
import { Counter } from "./prometheus.ts";

/** The labels of an increase, and how often it happened since the last scrape. */
interface Sum<Label extends string> {
  readonly labels: Readonly<Record<Label, string>>;
  count: number;
}

/**
 * A counter for what happens many times a second. prom-client sorts, checks and hashes the labels of each increase; here it gets the
 * sums when it is scraped.
 */
export class SummedCounter<Label extends string> {
  readonly #labelNames: readonly Label[];
  readonly #sums = new Map<string, Sum<Label>>();

  constructor(options: Omit<CounterConfiguration<Label>, "labelNames"> & { readonly labelNames: readonly Label[] }) {
    this.#labelNames = options.labelNames;
    const sums = this.#sums;
    new Counter<Label>({
      ...options,
      collect() {
        for (const sum of sums.values()) {
          this.inc(sum.labels, sum.count);
          sum.count = 0;
        }
      },
    });
  }

  /** `labels` has a value for each label. It is kept, so it must not be changed afterwards. */
  inc(labels: Readonly<Record<Label, string>>, by = 1): void {
    let key = "";
    for (const name of this.#labelNames) key += `${labels[name]}\n`;
    const sum = this.#sums.get(key);
    if (sum === undefined) this.#sums.set(key, { labels, count: by });
    else sum.count += by;
  }
}
