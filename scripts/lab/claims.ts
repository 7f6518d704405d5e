/** One thing that was tried, what should have come of it, and what came. */
export interface Claim {
  readonly theme: string;
  readonly what: string;
  readonly expected: string;
  readonly got: string;
  readonly right: boolean;
}

/** A claim holds when what was got is what was expected, to the letter, or matches the pattern. */
export const claim = (theme: string, what: string, expected: string | RegExp, got: string): Claim => ({
  ...{ theme, what, expected: String(expected), got },
  right: typeof expected === "string" ? expected === got : expected.test(got),
});

/** What was wrong, line by line, as `.ci/run` finds it, then the score of each theme. */
export const claimsText = (claims: readonly Claim[]): string =>
  [
    ...claims
      .filter(({ right }) => !right)
      .map(({ theme, what, expected, got }) => `FAIL ${theme}: ${what}\n    expected ${expected}\n    got      ${got}`),
    ...[...Map.groupBy(claims, ({ theme }) => theme)].map(
      ([theme, all]) => `${theme}: ${all.filter(({ right }) => right).length}/${all.length}`,
    ),
    "",
  ].join("\n");
