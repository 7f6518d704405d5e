import type { WorkbookParts } from "./workbook-parts.ts";

const PART_BYTES_MAX = 16 * 1024 * 1024;
const STYLES_MAX = 65_536;
const DAY_MS = 86_400_000;
const SECOND_MS = 1_000;
/** Serial numbers of Excel count from here: day 60 is a 29 February 1900 that never was (ECMA-376 §18.17.4.1). */
const EPOCH_1900_MS = Date.UTC(1899, 11, 30);
const EPOCH_1904_MS = Date.UTC(1904, 0, 1);
const SERIAL_MAX = 2_958_466;

/** Number formats that every workbook has (ECMA-376 §18.8.30) and that show dates or times. */
const isBuiltInDate = (id: number): boolean =>
  (id >= 14 && id <= 22) || (id >= 27 && id <= 36) || (id >= 45 && id <= 47) || (id >= 50 && id <= 58);

/** A format's own characters, without quoted texts, escapes, colours and conditions. */
const isDateFormat = (code: string): boolean => /[dmyhs]/i.test(code.replace(/"[^"]*"|\\.|_.|\[[^\]]*\]/g, ""));

/** Which styles of cells show a number as a date: the indices that cells name as `s`. */
export const readDateStyles = async (parts: WorkbookParts): Promise<ReadonlySet<number>> => {
  const dateFormats = new Set<number>();
  const styles = new Set<number>();
  let at = 0;
  let isInCells = false;
  await parts.read("xl/styles.xml", {
    bytesMax: PART_BYTES_MAX,
    handler: {
      open(name, { numFmtId = "", formatCode = "" }) {
        if (name === "numFmt" && isDateFormat(formatCode) && dateFormats.size < STYLES_MAX)
          dateFormats.add(Number(numFmtId));
        else if (name === "cellXfs") isInCells = true;
        else if (name === "xf" && isInCells) {
          const id = Number(numFmtId);
          if ((isBuiltInDate(id) || dateFormats.has(id)) && at < STYLES_MAX) styles.add(at);
          at++;
        }
      },
      close(name) {
        if (name === "cellXfs") isInCells = false;
      },
    },
  });
  return styles;
};

/** A serial number as ISO 8601: a date, a time of day, or both with a blank between. Null when it is none. */
export const serialDate = (serial: number, isFrom1904: boolean): string | null => {
  if (!Number.isFinite(serial) || serial < 0 || serial > SERIAL_MAX) return null;
  const ms = Math.round((serial * DAY_MS) / SECOND_MS) * SECOND_MS;
  const iso = new Date((isFrom1904 ? EPOCH_1904_MS : EPOCH_1900_MS) + ms).toISOString();
  const [date, time] = [iso.slice(0, 10), iso.slice(11, 19)];
  if (serial < 1) return time;
  return ms % DAY_MS === 0 ? date : `${date} ${time}`;
};
