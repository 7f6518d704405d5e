import { BoundedMap } from "../../foundation/base/bounded-map.ts";
import { type AttentionItem, byUrgency } from "../../foundation/base/attention.ts";
import type { Clock } from "../../foundation/base/clock.ts";
import type { SectionCount, Section, Viewer } from "../visit.ts";
import type { MachineState } from "../../doctor/acknowledgements.ts";
import type { DoctorAdvice } from "../../doctor/doctor.ts";

/** What needs attention in a part of the product. */
export interface AttentionSource {
  /** Whose count the navigation shows it in. */
  readonly section: Section;
  readonly itemsOf: (viewer: Viewer) => readonly AttentionItem[];
  /** The navigation counts its items, and the home page shows them in its own way. */
  readonly isApart?: boolean;
}

type Counts = Partial<Record<Section, SectionCount>>;

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
    const items = this.sources.flatMap(({ section, itemsOf, isApart = false }) => {
      const found = itemsOf(viewer);
      const { count = 0, isUrgent = false } = counts[section] ?? {};
      const isBad = found.some(({ severity }) => severity === "bad");
      counts[section] = { count: count + found.length, isUrgent: isUrgent || isBad };
      return isApart ? [] : found;
    });
    this.#recent.set(nameOf(viewer), { atMs: this.clock.monotonicMs(), counts });
    return items;
  }
}

const nameOf = ({ account, mode, user }: Viewer): string => `${account.id} ${mode} ${user.id}`;

/** What is wrong with a part of the service right now, as sentences. */
export interface PartFinding {
  /** The part: one or two words. */
  readonly label: string;
  readonly text: string;
}

/** The state of the service, for those who run it. */
interface OperatorFacts {
  /** What the doctor found last. */
  readonly machine: Pick<MachineState, "failures" | "warnings">;
  /** Why the service cannot verify addresses right now. */
  readonly blockers: readonly string[];
  readonly findings: readonly PartFinding[];
}

const SERVICE_LINK = { text: "Show the service", path: "/settings/service" };
const SENDER_LINK = { text: "How to fix", path: "/settings/sender" };

/** The first sentence as the title, the others as the detail. */
const serviceItem = ({ label, text }: PartFinding, severity: AttentionItem["severity"]): AttentionItem => {
  const end = /[.!?](?= [A-Z])/.exec(text)?.index ?? text.length - 1;
  return {
    severity,
    label,
    title: text.slice(0, end).replace(/\.$/, ""),
    detail: text.slice(end + 1).trim(),
    action: SERVICE_LINK,
    sinceMs: null,
  };
};

const adviceItem = ({ title, area, detail, remedy, severity }: DoctorAdvice): AttentionItem => ({
  severity: severity === "fail" ? "bad" : "warn",
  label: area,
  title,
  detail: remedy === null ? detail : `${detail} ${remedy}`,
  action: SENDER_LINK,
  sinceMs: null,
});

/** What needs an operator, on the pages with live data: problems of the service and failures of the machine, then its warnings. */
export const operatorSources = (stateOf: () => OperatorFacts): readonly AttentionSource[] => {
  const source = (itemsOf: (facts: OperatorFacts) => AttentionItem[], isApart: boolean): AttentionSource => ({
    section: "settings",
    isApart,
    itemsOf: ({ mode, user }) => (user.isOperator && mode === "live" ? itemsOf(stateOf()) : []),
  });
  return [source(operatorAttention, false), source(({ machine }) => machine.warnings.map(adviceItem), true)];
};

const operatorAttention = ({ machine, blockers, findings }: OperatorFacts): AttentionItem[] => [
  ...blockers.map((text) => serviceItem({ label: "Service", text }, "bad")),
  ...findings.map((finding) => serviceItem(finding, "warn")),
  ...machine.failures.map(adviceItem),
];
