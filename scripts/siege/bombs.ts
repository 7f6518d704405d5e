import { crc32, deflateRawSync, gzipSync } from "node:zlib";

/** Report mails and files that are small on the wire and large in memory. */

const MB = 1_000_000;
const DAY_S = 86_400;
const RECORDS = 73;
const TEXTS = 100;
const LETTERS = 4_000;

const base64Lines = (bytes: Uint8Array): string =>
  (
    Buffer.from(bytes)
      .toString("base64")
      .match(/.{1,76}/g) ?? []
  ).join("\r\n");

/** A mail with one attachment. Lines end in CRLF, and none begins with a dot. */
export const mailWith = (
  to: string,
  attachment: { readonly name: string; readonly type: string; readonly bytes: Uint8Array },
  headers: readonly string[] = [],
): Buffer =>
  Buffer.from(
    [
      "From: Reporter <dmarc@reporter.test>",
      `To: ${to}`,
      "Subject: Report",
      ...headers,
      "MIME-Version: 1.0",
      `Content-Type: ${attachment.type}; name="${attachment.name}"`,
      `Content-Disposition: attachment; filename="${attachment.name}"`,
      "Content-Transfer-Encoding: base64",
      "",
      base64Lines(attachment.bytes),
      "",
    ].join("\r\n"),
  );

/** An aggregate report about `domain` whose records hold as much text as they may: 57 MB, 190 kB as gzip. */
export const recordBomb = (domain: string, n: number): Uint8Array => {
  const text = "x".repeat(LETTERS);
  const reason = `<reason><type>other</type><comment>${text}</comment></reason>`.repeat(TEXTS);
  const dkim =
    `<dkim><domain>${domain}</domain><selector>s</selector><result>pass</result><human_result>${text}</human_result></dkim>`.repeat(
      TEXTS,
    );
  const record = (row: number): string =>
    `<record><row><source_ip>192.0.2.${row + 1}</source_ip><count>1</count><policy_evaluated><disposition>none</disposition><dkim>pass</dkim><spf>pass</spf>${reason}</policy_evaluated></row><identifiers><header_from>${domain}</header_from></identifiers><auth_results>${dkim}</auth_results></record>`;
  const begin = (Math.floor(Date.now() / 1000 / DAY_S) - 1) * DAY_S;
  const head = `<report_metadata><org_name>reporter.test</org_name><email>dmarc@reporter.test</email><report_id>bomb${n}</report_id><date_range><begin>${begin}</begin><end>${begin + DAY_S - 1}</end></date_range></report_metadata>`;
  const policy = `<policy_published><domain>${domain}</domain><p>none</p></policy_published>`;
  const records = Array.from({ length: RECORDS }, (_, row) => record(row)).join("");
  return gzipSync(`<?xml version="1.0"?><feedback>${head}${policy}${records}</feedback>`);
};

const ZIP_ENTRIES = 16;
const ZIP_ENTRY_BYTES = 256 * 1024 * 1024;

const shared = (crc: number, packed: number, nameLength: number): Buffer => {
  const fields = Buffer.alloc(26);
  fields.writeUInt16LE(20, 0);
  fields.writeUInt16LE(8, 4);
  fields.writeUInt32LE(crc, 10);
  fields.writeUInt32LE(packed, 14);
  fields.writeUInt32LE(ZIP_ENTRY_BYTES, 18);
  fields.writeUInt16LE(nameLength, 22);
  return fields;
};

/** A zip archive (APPNOTE 6.3) of 16 files with 256 MiB of zeros each: 4.2 MB. */
export const zipBomb = (): Buffer => {
  const zeros = Buffer.alloc(ZIP_ENTRY_BYTES);
  const packed = deflateRawSync(zeros);
  const crc = crc32(zeros);
  const files: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (let n = 0; n < ZIP_ENTRIES; n++) {
    const name = Buffer.from(`report${n}.xml`);
    const fields = shared(crc, packed.length, name.length);
    const file = Buffer.concat([Buffer.from("PK\x03\x04"), fields, name, packed]);
    const place = Buffer.alloc(14);
    place.writeUInt32LE(offset, 10);
    directory.push(Buffer.concat([Buffer.from("PK\x01\x02\x14\x00"), fields, place, name]));
    files.push(file);
    offset += file.length;
  }
  const index = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(ZIP_ENTRIES, 4);
  end.writeUInt16LE(ZIP_ENTRIES, 6);
  end.writeUInt32LE(index.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...files, index, Buffer.from("PK\x05\x06"), end]);
};

/** A mail whose header has 20 MB, in lines of the longest length allowed (RFC 5322 §2.1.1). */
export const headerBomb = (to: string, attachment: Uint8Array): Buffer => {
  const line = `X-Filler: ${"x".repeat(980)}`;
  const headers = Array.from({ length: Math.ceil((20 * MB) / line.length) }, () => line);
  return mailWith(to, { name: "report.xml.gz", type: "application/gzip", bytes: attachment }, headers);
};

/** JSON of one object with so many keys that none of them is known. */
export const manyKeys = (keys: number): string =>
  `{${Array.from({ length: keys }, (_, n) => `"k${n.toString(36)}":1`).join(",")}}`;
