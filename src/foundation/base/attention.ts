/** A problem that a person must look at, as the home page of the dashboard shows it. */
export interface AttentionItem {
  /** `bad` before `warn` before `unknown`. */
  readonly severity: "bad" | "warn" | "unknown";
  /** The badge: one or two words. */
  readonly label: string;
  readonly title: string;
  /** Why, and what to do or how it ends. */
  readonly detail: string;
  /** `path`: of the live page, without `/test`. */
  readonly action: { readonly text: string; readonly path: string };
  /** Milliseconds since 1970; null when it is not known or has no beginning. */
  readonly sinceMs: number | null;
}

const SEVERITIES: readonly AttentionItem["severity"][] = ["bad", "warn", "unknown"];

/** Compares two items for a sort: the more urgent comes first. */
export const byUrgency = (a: Pick<AttentionItem, "severity">, b: Pick<AttentionItem, "severity">): number =>
  SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity);
