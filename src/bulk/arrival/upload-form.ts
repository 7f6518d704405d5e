import { Busboy } from "@fastify/busboy";
import type { Clock } from "../../foundation/base/clock.ts";
import { STALL_MS_MAX, uploadRefused, within } from "./upload-body.ts";

/** Limits of the form fields other than the file. */
export const FIELDS_MAX = 20;
export const FIELD_BYTES_MAX = 8 * 1024;
const FIELD_NAME_BYTES_MAX = 100;
const FILE_PART = "file";

/** The contents of a form except the bytes of its file. */
export interface FormContents {
  readonly fileName: string | null;
  readonly fields: Readonly<Record<string, string>>;
}

export interface FormDeps {
  readonly contentType: string;
  readonly chunks: AsyncIterable<Uint8Array>;
  readonly clock: Clock;
  /** Called with the bytes of the file in order, one call at a time. */
  readonly onFileBytes: (bytes: Uint8Array) => Promise<void>;
}

/**
 * Reads a multipart/form-data body (RFC 7578) with exactly one file, in the part `file`, and up to `FIELDS_MAX` fields.
 * The file is passed on as it arrives. Throws 400 for a truncated form, for no file or more than one, for a repeated
 * field, and beyond the limits.
 */
export const readForm = async ({ contentType, chunks, clock, onFileBytes }: FormDeps): Promise<FormContents> => {
  const form = openForm(contentType);
  const passOn = async (): Promise<void> => {
    for (const bytes of form.pending.splice(0)) await onFileBytes(bytes);
  };
  try {
    for await (const chunk of chunks) {
      await within(clock, STALL_MS_MAX, Promise.race([form.failed, form.write(chunk)]));
      await passOn();
    }
    await within(clock, STALL_MS_MAX, Promise.race([form.failed, form.end()]));
    await passOn();
  } finally {
    form.stop();
  }
  if (form.contents.fileName === undefined) throw uploadRefused('The form has no part "file".');
  return { fileName: form.contents.fileName, fields: Object.fromEntries(form.contents.fields) };
};

const openForm = (contentType: string) => {
  const pending: Uint8Array[] = [];
  const contents: { fileName: string | null | undefined; fields: Map<string, string> } = {
    fileName: undefined,
    fields: new Map(),
  };
  const failure = Promise.withResolvers<never>();
  // The failure may be awaited later, or never.
  failure.promise.catch(() => undefined);
  const fail = (message: string): void => failure.reject(uploadRefused(message));

  const busboy = createBusboy(contentType);
  const fileEnd = Promise.withResolvers<void>();
  busboy.on("file", (name, stream, fileName) => {
    if (name !== FILE_PART) fail('Send the list in the part "file" of the form.');
    contents.fileName = fileName === undefined || fileName === "" ? null : fileName.slice(0, 255);
    stream.on("data", (bytes: Uint8Array) => void pending.push(bytes));
    stream.on("error", () => fail(BROKE_OFF));
    stream.on("end", () => fileEnd.resolve());
  });
  busboy.on("field", (name, value, nameCut, valueCut) => {
    if (nameCut || valueCut) fail(`The form field ${JSON.stringify(name)} is too long.`);
    if (contents.fields.has(name)) fail(`The form field ${JSON.stringify(name)} must not be repeated.`);
    contents.fields.set(name, value);
  });
  busboy.on("filesLimit", () => fail("The form must not have more than one file."));
  busboy.on("fieldsLimit", () => fail(`The form may have at most ${FIELDS_MAX} fields.`));
  busboy.on("partsLimit", () => fail(`The form may have at most ${FIELDS_MAX} fields.`));
  busboy.on("error", () => fail(BROKE_OFF));
  const finished = new Promise<void>((resolve) => {
    busboy.on("finish", () => resolve());
  });

  return {
    pending,
    contents,
    failed: failure.promise,
    write: (chunk: Uint8Array): Promise<void> =>
      new Promise((resolve) => {
        busboy.write(chunk, () => resolve());
      }),
    async end(): Promise<void> {
      busboy.end();
      await finished;
      if (contents.fileName !== undefined) await fileEnd.promise;
    },
    stop: (): void => void busboy.destroy(),
  };
};

const BROKE_OFF = "The form is truncated or is not multipart/form-data.";

const createBusboy = (contentType: string) => {
  try {
    return new Busboy({
      headers: { "content-type": contentType },
      isPartAFile: (name, _type, fileName) => name === FILE_PART || fileName !== undefined,
      limits: {
        files: 1,
        fields: FIELDS_MAX,
        parts: FIELDS_MAX + 1,
        fieldSize: FIELD_BYTES_MAX,
        fieldNameSize: FIELD_NAME_BYTES_MAX,
      },
    });
  } catch {
    // Busboy refuses nothing else at this point.
    throw uploadRefused("The Content-Type has no boundary parameter.");
  }
};
