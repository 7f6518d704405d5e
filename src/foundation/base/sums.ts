type Counted<Key extends PropertyKey> = Readonly<Record<Key, number>>;

/** The sum of what each row counts; 0 without rows. */
export const sumBy = <Row>(rows: readonly Row[], count: (row: Row) => number): number =>
  rows.reduce((sum, row) => sum + count(row), 0);

/** The sum of a field of all rows. */
export const sumOf = <Key extends PropertyKey>(rows: ReadonlyArray<Counted<Key>>, key: Key): number =>
  sumBy(rows, (row) => row[key]);

/** The sums of fields of all rows, each under the name of its field. */
export const sumFields = <Key extends PropertyKey>(
  rows: ReadonlyArray<Counted<Key>>,
  ...keys: readonly Key[]
): Record<Key, number> => {
  const sums = Object.fromEntries(keys.map((key) => [key, sumOf(rows, key)]));
  // Every key has a sum.
  return sums as Record<Key, number>;
};

/** Sorts rows by a field, the largest number first. */
export const mostFirst =
  <Key extends PropertyKey>(key: Key) =>
  (a: Counted<Key>, b: Counted<Key>): number =>
    b[key] - a[key];
