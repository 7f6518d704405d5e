/** Names that mean the same reporter, as they stand in reports, without what names a legal form. */
const SAME: Readonly<Record<string, string>> = {
  aol: "yahoo",
  "aol.com": "yahoo",
  "enterprise outlook": "microsoft",
  google: "google",
  "google.com": "google",
  "hotmail.com": "microsoft",
  microsoft: "microsoft",
  "microsoft.com": "microsoft",
  oath: "yahoo",
  office365: "microsoft",
  outlook: "microsoft",
  "outlook.com": "microsoft",
  yahoo: "yahoo",
  "yahoo.com": "yahoo",
};
const LEGAL_FORM = /[\s,!]+(?:inc|llc|ltd|corp|corporation|holdings)?\.?$/;
const LEGAL_FORMS_MAX = 3;
/** What somebody reports once may be anybody's word about one day. */
const DAYS_MIN = 2;

/** Who is behind the name of a reporter (lower case): `enterprise outlook` and `protection.outlook.com` are one. */
export const reporterBehind = (name: string): string => {
  let plain = name.trim();
  for (let n = 0; n < LEGAL_FORMS_MAX; n++) plain = plain.replace(LEGAL_FORM, "");
  const parent = plain.split(".").slice(-2).join(".");
  return SAME[plain] ?? SAME[parent] ?? plain;
};

/** How many reporters told of two days at least; `days` has the names that stand in the reports about each day. */
export const countReporters = (days: readonly (readonly string[])[]): number => {
  const told = new Map<string, number>();
  for (const names of days) {
    for (const reporter of new Set(names.map(reporterBehind))) told.set(reporter, (told.get(reporter) ?? 0) + 1);
  }
  return [...told.values()].filter((count) => count >= DAYS_MIN).length;
};
