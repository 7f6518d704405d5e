import { BoundedMap } from "../../foundation/base/bounded-map.ts";
import { type AttentionItem, byUrgency } from "../../foundation/base/attention.ts";
import type { Clock } from "../../foundation/base/clock.ts";
import type { Section, Viewer } from "../visit.ts";
import type { DoctorAdvice, Examination } from "../../doctor/doctor.ts";

/** What needs attention in a part of the product. */
export interface AttentionSource {
  /** Whose count the navigation shows it in. */
  readonly section: Section;
  readonly itemsOf: (viewer: Viewer) => readonly AttentionItem[];
}

type Counts = Partial<Record<Section, number>>;

/** The counts of the navigation may be as old as this; the home page reads everything. */
const RECENT_MS = 10_000;
const VIEWERS_MAX = 1_000;

/** What needs attention in all parts of the product, worst first. */
export class AttentionBoard {
  /** By account, mode and user, because roles see different items; the least recent first. */
  readonly #recent = new BoundedMap<string, { readonly atMs: number; readonly counts: Counts }>(VIEWERS_MAX);

  constructor(
    private readonly clock: Pick<Clock, "monotonicMs">,
    private readonly sources: readonly AttentionSource[],
  ) {}

  /** Everything, read now. */
  items(viewer: Viewer): readonly AttentionItem[] {
    return this.#read(viewer).toSorted(byUrgency);
  }

  /** How many items there are by section, read a moment ago at most. */
  counts(viewer: Viewer): Counts {
    const known = this.#recent.get(nameOf(viewer));
    if (known !== undefined && this.clock.monotonicMs() - known.atMs < RECENT_MS) return known.counts;
    this.#read(viewer);
    return this.#recent.get(nameOf(viewer))?.counts ?? {};
  }

  #read(viewer: Viewer): AttentionItem[] {
    const counts: Counts = {};
    const items = this.sources.flatMap(({ section, itemsOf }) => {
      const found = itemsOf(viewer);
      counts[section] = (counts[section] ?? 0) + found.length;
      return found;
    });
    this.#recent.set(nameOf(viewer), { atMs: this.clock.monotonicMs(), counts });
    return items;
  }
}

const nameOf = ({ account, mode, user }: Viewer): string => `${account.id} ${mode} ${user.id}`;

/** The state of the service, for those who run it. */
interface OperatorFacts {
  /** What doctor found last; null before its first run. */
  readonly examination: Examination | null;
  /** Why the service cannot verify addresses right now. */
  readonly blockers: readonly string[];
  /** What else is wrong with it right now: egress, resolver, backups, report mail. */
  readonly findings: readonly string[];
}

const SERVICE_LINK = { text: "Show the service", path: "/settings/service" };
const SENDER_LINK = { text: "How to fix", path: "/settings/sender" };
const DOCTOR_MAX = 5;

/** The first sentence as the title, the others as the detail. */
const serviceItem = (text: string, severity: AttentionItem["severity"]): AttentionItem => {
  const end = /[.!?](?= [A-Z])/.exec(text)?.index ?? text.length - 1;
  return {
    severity,
    label: "Service",
    title: text.slice(0, end).replace(/\.$/, ""),
    detail: text.slice(end + 1).trim(),
    action: SERVICE_LINK,
    sinceMs: null,
  };
};

const adviceItem = ({ title, detail, remedy, severity }: DoctorAdvice): AttentionItem => ({
  severity: severity === "fail" ? "bad" : "warn",
  label: "Sending",
  title,
  detail: remedy === null ? detail : `${detail} ${remedy}`,
  action: SENDER_LINK,
  sinceMs: null,
});

/** The same as a part of the board: operators see it, on the pages with live data. */
export const operatorSource = (stateOf: () => OperatorFacts): AttentionSource => ({
  section: "settings",
  itemsOf: ({ mode, user }) => (user.isOperator && mode === "live" ? operatorAttention(stateOf()) : []),
});

/** What needs an operator: the service itself, and how this machine sends. */
export const operatorAttention = ({ examination, blockers, findings }: OperatorFacts): AttentionItem[] => [
  ...blockers.map((text) => serviceItem(text, "bad")),
  ...findings.map((text) => serviceItem(text, "warn")),
  ...(examination?.findings ?? [])
    .filter(({ severity }) => severity !== "ok")
    .slice(0, DOCTOR_MAX)
    .map(adviceItem),
];
