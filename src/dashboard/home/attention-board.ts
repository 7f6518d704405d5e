import type { AttentionItem } from "../../foundation/base/attention.ts";
import type { Clock } from "../../foundation/base/clock.ts";
import type { Section, Viewer } from "../visit.ts";

/** What needs attention in a part of the product. */
export interface AttentionSource {
  /** Whose count the navigation shows it in. */
  readonly section: Section;
  readonly itemsOf: (viewer: Viewer) => readonly AttentionItem[];
}

type Counts = Partial<Record<Section, number>>;

const SEVERITIES: ReadonlyArray<AttentionItem["severity"]> = ["bad", "warn", "unknown"];
/** The counts of the navigation may be as old as this; the home page reads everything. */
const RECENT_MS = 10_000;
const VIEWERS_MAX = 1_000;

const urgency = ({ severity }: AttentionItem): number => SEVERITIES.indexOf(severity);

/** What needs attention in all parts of the product, worst first. */
export class AttentionBoard {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #sources: readonly AttentionSource[];
  /** By account, mode and user, because roles see different items; the least recent first. */
  readonly #recent = new Map<string, { readonly atMs: number; readonly counts: Counts }>();

  constructor(clock: Pick<Clock, "monotonicMs">, sources: readonly AttentionSource[]) {
    this.#clock = clock;
    this.#sources = sources;
  }

  /** Everything, read now. */
  items(viewer: Viewer): readonly AttentionItem[] {
    return this.#read(viewer).toSorted((a, b) => urgency(a) - urgency(b));
  }

  /** How many items there are by section, read a moment ago at most. */
  counts(viewer: Viewer): Counts {
    const known = this.#recent.get(nameOf(viewer));
    if (known !== undefined && this.#clock.monotonicMs() - known.atMs < RECENT_MS) return known.counts;
    this.#read(viewer);
    return this.#recent.get(nameOf(viewer))?.counts ?? {};
  }

  #read(viewer: Viewer): AttentionItem[] {
    const counts: Counts = {};
    const items = this.#sources.flatMap(({ section, itemsOf }) => {
      const found = itemsOf(viewer);
      counts[section] = (counts[section] ?? 0) + found.length;
      return found;
    });
    this.#recent.delete(nameOf(viewer));
    this.#recent.set(nameOf(viewer), { atMs: this.#clock.monotonicMs(), counts });
    const [oldest] = this.#recent.keys();
    if (this.#recent.size > VIEWERS_MAX && oldest !== undefined) this.#recent.delete(oldest);
    return items;
  }
}

const nameOf = ({ account, mode, user }: Viewer): string => `${account.id} ${mode} ${user.id}`;
