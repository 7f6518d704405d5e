import { crc32, deflateRawSync } from "node:zlib";

/** A ZIP archive of these files, deflated. */
export const zipArchive = (files: Readonly<Record<string, string | Uint8Array>>): Buffer => {
  const [locals, directory]: [Buffer[], Buffer[]] = [[], []];
  let offset = 0;
  for (const [name, contents] of Object.entries(files)) {
    const bytes = Buffer.from(contents as Uint8Array);
    const packed = deflateRawSync(bytes);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(8, 4);
    common.writeUInt32LE(crc32(bytes), 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(bytes.length, 18);
    common.writeUInt16LE(Buffer.byteLength(name), 22);
    const local = Buffer.concat([Buffer.from("PK\u0003\u0004"), common, Buffer.from(name), packed]);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(offset, 10);
    directory.push(Buffer.concat([Buffer.from("PK\u0001\u0002\u0014\0"), common, tail, Buffer.from(name)]));
    locals.push(local);
    offset += local.length;
  }
  const entries = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write("PK\u0005\u0006");
  end.writeUInt16LE(directory.length, 8);
  end.writeUInt16LE(directory.length, 10);
  end.writeUInt32LE(entries.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...locals, entries, end]);
};

const NAMESPACE = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"';

export interface WorkbookText {
  /** The XML inside `sheetData`. */
  readonly rows?: string;
  /** The XML inside `sst`. */
  readonly strings?: string;
  readonly workbook?: string;
  readonly styles?: string;
}

/** An Excel workbook with what is given, in the place of what most have. */
export const workbookWith = ({ rows = "", strings = "", workbook, styles = "" }: WorkbookText): Buffer => {
  const relation = (id: string, target: string) => `<Relationship Id="${id}" Target="${target}"/>`;
  const links = [relation("rId1", "worksheets/sheet1.xml"), relation("rId2", "worksheets/sheet2.xml")];
  return zipArchive({
    "[Content_Types].xml": "<Types/>",
    "xl/workbook.xml":
      workbook ??
      `<workbook ${NAMESPACE}><sheets><sheet name="hidden" state="hidden" r:id="rId2"/><sheet name="One" r:id="rId1"/></sheets></workbook>`,
    "xl/_rels/workbook.xml.rels": `<Relationships>${links.join("")}</Relationships>`,
    "xl/styles.xml": `<styleSheet ${NAMESPACE}>${styles}</styleSheet>`,
    "xl/sharedStrings.xml": `<sst ${NAMESPACE}>${strings}</sst>`,
    "xl/worksheets/sheet1.xml": `<worksheet ${NAMESPACE}><sheetData>${rows}</sheetData></worksheet>`,
    "xl/worksheets/sheet2.xml": `<worksheet ${NAMESPACE}><sheetData/></worksheet>`,
  });
};

/** An Excel workbook of visible sheets in this order; in each, the XML inside `sheetData`. */
export const workbookOfSheets = (sheets: Readonly<Record<string, string>>): Buffer => {
  const entries = Object.entries(sheets);
  const named = entries.map(([name], at) => `<sheet name="${Bun.escapeHTML(name)}" r:id="rId${at}"/>`);
  const links = entries.map((_, at) => `<Relationship Id="rId${at}" Target="worksheets/s${at}.xml"/>`);
  return zipArchive({
    "xl/workbook.xml": `<workbook ${NAMESPACE}><sheets>${named.join("")}</sheets></workbook>`,
    "xl/_rels/workbook.xml.rels": `<Relationships>${links.join("")}</Relationships>`,
    ...Object.fromEntries(
      entries.map(([, rows], at) => [
        `xl/worksheets/s${at}.xml`,
        `<worksheet><sheetData>${rows}</sheetData></worksheet>`,
      ]),
    ),
  });
};

/** The XML of a row of texts. */
export const sheetRow = (...texts: readonly string[]): string =>
  `<row>${texts.map((text) => `<c t="str"><v>${Bun.escapeHTML(text)}</v></c>`).join("")}</row>`;

/** An Excel workbook of these texts. */
export const workbookOf = (rows: ReadonlyArray<readonly string[]>): Buffer => {
  const texts = rows.flat();
  let at = 0;
  const cells = rows.map((row) => `<row>${row.map(() => `<c t="s"><v>${at++}</v></c>`).join("")}</row>`);
  return workbookWith({
    rows: cells.join(""),
    strings: texts.map((text) => `<si><t>${Bun.escapeHTML(text)}</t></si>`).join(""),
  });
};
