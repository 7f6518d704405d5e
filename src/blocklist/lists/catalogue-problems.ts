import type { CodeMatch } from "./code-match.ts";
import { formatCodeMatch, ipv4Number, matchesCode, codesOverlap } from "./code-match.ts";
import type { Blocklist, Catalogue, ExcludedLists } from "./blocklist.ts";
import { TARGET_KINDS } from "./blocklist.ts";
import { literalName } from "./query-name.ts";

/** Return codes that mean an error on every list, so no list may declare them. */
const ERROR_CODES: CodeMatch = { kind: "range", from: 0x7f_ff_ff_00, to: 0x7f_ff_ff_ff };
const LOCALHOST = 0x7f_00_00_01;

/** Errors and contradictions in a catalogue of valid shape, as sentences. */
export const catalogueProblems = ({ lists, excluded }: Catalogue): readonly string[] => [
  ...duplicates(lists.map(({ id }) => id)).map((id) => `List "${id}" is in the catalogue twice.`),
  ...duplicates(lists.flatMap(({ zone }) => zone ?? [])).map((zone) => `The zone ${zone} belongs to two lists.`),
  ...duplicates(lists.flatMap(listingIds)).map((id) => `The listing id "${id}" is used by two lists.`),
  ...lists.flatMap((list) =>
    [...zoneProblems(list, excluded), ...codeProblems(list), ...testPointProblems(list)].map(
      (problem) => `List "${list.id}": ${problem}`,
    ),
  ),
];

const duplicates = (texts: readonly string[]): string[] => [
  ...new Set(texts.filter((text, index) => texts.indexOf(text) !== index)),
];

const listingIds = ({ codes }: Blocklist): string[] => [...new Set(codes.map(({ id }) => id))];

const zoneProblems = ({ zone, keyedZone, defaultEnabled }: Blocklist, excluded: readonly ExcludedLists[]): string[] => {
  if (zone === null && keyedZone === null) return ["it has neither a zone nor a keyed_zone."];
  const problems = zone === null && defaultEnabled ? ["it needs a key, so it cannot be enabled by default."] : [];
  const bans = zone === null ? [] : excluded.filter(({ zones }) => zones.some((ban) => covers(ban, zone)));
  return [...problems, ...bans.map((ban) => `the zone ${zone} is excluded (${ban.name}): ${ban.reason}`)];
};

const covers = (ban: string, zone: string): boolean =>
  ban.startsWith("*.") ? zone.endsWith(ban.slice(1)) : zone === ban;

interface Claim {
  readonly by: string;
  readonly match: CodeMatch;
}

const codeProblems = (list: Blocklist): string[] => {
  const claim = (by: string, matches: readonly CodeMatch[]): Claim[] => matches.map((match) => ({ by, match }));
  const claims = [
    ...list.codes.flatMap(({ id, matches }) => claim(`code ${id}`, matches)),
    ...list.ignores.flatMap(({ matches }) => claim("an ignored code", matches)),
  ];
  const refusals = list.refusals.flatMap(({ matches }) => claim("a refusal", matches));
  const all = [...claims, ...refusals];
  const twice = all.flatMap((a, index) =>
    all
      .slice(index + 1)
      .filter((b) => codesOverlap(a.match, b.match))
      .map((b) => `the codes ${formatCodeMatch(a.match)} (${a.by}) and ${formatCodeMatch(b.match)} (${b.by}) overlap.`),
  );
  return [...twice, ...claims.flatMap(reservedProblems)];
};

const reservedProblems = ({ by, match }: Claim): string[] => {
  const what = `${formatCodeMatch(match)} (${by})`;
  if (codesOverlap(match, ERROR_CODES))
    return [`${what} overlaps 127.255.255.0/24, which means an error on every list.`];
  const isHiddenRefusal = match.kind === "range" && match.from !== match.to && matchesCode(match, LOCALHOST);
  return isHiddenRefusal
    ? [`${what} includes 127.0.0.1, which usually means a refusal: declare that code separately or leave it out.`]
    : [];
};

const testPointProblems = (list: Blocklist): string[] => {
  const kinds = TARGET_KINDS.filter((kind) => list.testPoints[kind] !== undefined);
  const positives = kinds.flatMap((kind) => list.testPoints[kind]?.positive ?? []);
  const missing =
    list.defaultEnabled && positives.length === 0
      ? ['it is enabled by default without a positive test point, so its "not listed" could not be verified.']
      : [];
  const foreign = kinds
    .filter((kind) => !list.kinds.includes(kind))
    .map((kind) => `it has test points for ${kind}, which it does not list.`);
  const unreadable = kinds.flatMap((kind) =>
    [...(list.testPoints[kind]?.positive.map(({ value }) => value) ?? []), ...(list.testPoints[kind]?.negative ?? [])]
      .filter((value) => literalName({ kind, value }) === null)
      .map((value) => `the test point "${value}" is not a valid ${kind} value.`),
  );
  const undocumented = positives
    .flatMap(({ answers }) => answers)
    .filter((code) => !isDocumented(list, code))
    .map((code) => `a test point expects ${code}, which is not a code of the list.`);
  return [...missing, ...foreign, ...unreadable, ...undocumented];
};

const isDocumented = ({ codes, ignores }: Blocklist, code: string): boolean => {
  const address = ipv4Number(code);
  return (
    address !== null &&
    [...codes, ...ignores].some(({ matches }) => matches.some((match) => matchesCode(match, address)))
  );
};
