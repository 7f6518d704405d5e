/** What row `n` of a process holds: lengths that differ, so that SQLite moves rows between pages. */
export const emailOf = (prefix: string, n: number): string => `${prefix}-${n}@gaps.example`;

const EVIDENCE_CHARACTERS = 1_300;

export const evidenceOf = (prefix: string, n: number): string =>
  JSON.stringify({ email: emailOf(prefix, n), more: "x".repeat((n * 37) % EVIDENCE_CHARACTERS) });
