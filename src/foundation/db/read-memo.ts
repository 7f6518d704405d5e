import { BoundedMap } from "../base/bounded-map.ts";
import type { Db } from "./open.ts";

/** Another value after every write, also of other processes. */
const versionOf = ({ sqlite }: Pick<Db, "sqlite">): string => {
  const ofOthers = sqlite.query<{ data_version: number }, []>("PRAGMA data_version").get();
  const own = sqlite.query<{ changes: number }, []>("SELECT total_changes() changes").get();
  return `${ofOthers?.data_version ?? 0} ${own?.changes ?? 0}`;
};

/**
 * Keeps what reads of the database returned, at most `sizeMax` results, until the next write: values, or promises of reads in
 * several turns, which those who ask meanwhile share.
 */
export class ReadMemo<V> {
  readonly #known: BoundedMap<string, { readonly version: string; readonly value: V }>;

  constructor(
    private readonly db: Pick<Db, "sqlite">,
    sizeMax: number,
  ) {
    this.#known = new BoundedMap(sizeMax);
  }

  /** What `read` returns, which depends on nothing but `key` and the database. */
  get(key: string, read: () => V): V {
    const version = versionOf(this.db);
    const known = this.#known.get(key);
    if (known?.version === version) return known.value;
    const value = read();
    const kept = { version, value };
    this.#known.set(key, kept);
    const forget = () => this.#known.get(key) === kept && this.#known.delete(key);
    if (value instanceof Promise) void value.catch(forget);
    return value;
  }
}
