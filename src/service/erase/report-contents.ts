import { readMessage } from "../../foundation/mail/message.ts";
import { createUnpackBudget, unpack } from "../../dmarc/reports/report/unpack.ts";

const decoder = new TextDecoder();

/**
 * The texts of a report mail or file: as received, and what is encoded or packed in it (transfer encodings, archives).
 * Texts beyond the limits of reading reports are left out. Never throws, whatever the bytes.
 */
export async function* reportContents(bytes: Uint8Array): AsyncGenerator<string, void> {
  yield decoder.decode(bytes);
  const budget = createUnpackBudget();
  const message = await readMessage(bytes);
  const parts = message.ok ? message.value.parts : [{ bytes, name: null }];
  for (const part of parts) {
    for (const unpacked of await unpack(part.bytes, part.name, budget))
      if (unpacked.kind !== "refused") yield decoder.decode(unpacked.bytes);
  }
}
