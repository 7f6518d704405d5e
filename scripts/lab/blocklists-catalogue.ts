import type { LabList } from "./blocklists-lists.ts";

const point = (value: string, negative: string) => ({ positive: [{ value }], negative: [negative] });
const TEST_POINTS = {
  ipv4: point("127.0.0.2", "127.0.0.1"),
  ipv6: point("::ffff:7f00:2", "::ffff:7f00:1"),
  domain: point("test", "invalid"),
};

const entryOf = (list: LabList) => ({
  id: list.id,
  name: `The lab's ${list.id}`,
  operator: "The lab",
  kinds: list.kinds,
  zone: list.key === undefined ? list.zone : null,
  keyed_zone: list.key === undefined ? null : `{key}.${list.zone}`,
  domain_form: list.form ?? "both",
  codes: Object.entries(list.codes).map(([match, id]) => ({
    match: [match],
    id: `${list.id}-${id}`,
    name: `${list.id} ${id}`,
    meaning: `The lab calls it ${id}.`,
    category: "spam",
    severity: "high",
  })),
  refusals:
    list.refusalOutcomes === undefined
      ? []
      : [{ outcomes: list.refusalOutcomes, reason: "It does not serve us.", remedy: "Ask its operator." }],
  ignores: list.ignores === undefined ? [] : [{ match: list.ignores, meaning: "Known, and no listing." }],
  test_points: Object.fromEntries(list.kinds.map((kind) => [kind, TEST_POINTS[kind]])),
  default_enabled: list.disabled === undefined && list.key === undefined,
  budget: { queries_per_day: null, spacing_ms: 0 },
  delist_url: `https://${list.id}.example/`,
  confidence: "A",
});

/** The lab's lists in the form of `POSTWARDEN_BLOCKLIST_CATALOGUE`. */
export const catalogueText = (lists: readonly LabList[]): string =>
  JSON.stringify({ version: "lab", lists: lists.map(entryOf), excluded: [] });
