import { z } from "zod";
import { isSourceKey } from "../../dmarc/insight/sources/source-identity.ts";
import { CLASSIFICATIONS } from "../../dmarc/insight/sources/rollup-store.ts";
import { countText } from "../components/number.tsx";
import { listOf, optionalText } from "../form-input.ts";
import { formAction, type PageRoute } from "../page.ts";
import type { Viewer } from "../visit.ts";
import { isOwnPath, redirectToPath } from "../redirect.ts";
import { AUTOMATIC } from "./class-form.tsx";
import { CLASS_WORDS } from "./dmarc-words.ts";
import type { DmarcPageUseCases } from "./page-use-cases.ts";

const NOTE_CHARACTERS_MAX = 500;
const KEYS_MAX = 500;

const fields = {
  classification: z.enum([...CLASSIFICATIONS, AUTOMATIC]),
  note: optionalText(NOTE_CHARACTERS_MAX),
  back: z.string().default(""),
};
const keySchema = z.string().refine(isSourceKey, "There is no such source");

/** Back to the page of DMARC that a form stood on. */
export const backPath = (viewer: Viewer, back: string, fallback: string): string =>
  isOwnPath(back) && back.startsWith(viewer.href("/dmarc")) ? back : viewer.href(fallback);

const classWords = (classification: (typeof fields)["classification"]["_output"]): string =>
  classification === AUTOMATIC ? "classified automatically" : CLASS_WORDS[classification].text.toLowerCase();

/** Classify one source, or all that are ticked in a table. */
export const classActions = ({ domains, classifier }: DmarcPageUseCases): readonly PageRoute[] => {
  const classify = (
    viewer: Viewer,
    id: string,
    keys: readonly string[],
    form: z.output<z.ZodObject<typeof fields>>,
  ) => {
    const { classification, note } = form;
    return classifier.classify(() => domains.find(viewer.caller, id), {
      keys,
      note,
      classification: classification === AUTOMATIC ? null : classification,
    });
  };
  return [
    formAction(
      {
        path: "/dmarc/:id/sources/:key/class",
        params: z.object({ id: z.string(), key: z.string() }),
        form: z.object(fields),
      },
      async ({ viewer, params: { id, key }, form }) => {
        const [source] = await classify(viewer, id, [key], form);
        const back = backPath(viewer, form.back, `/dmarc/${id}/sources`);
        return redirectToPath(back, { ok: `${source?.name ?? key} is now ${classWords(form.classification)}.` });
      },
    ),
    formAction(
      {
        path: "/dmarc/:id/classify",
        params: z.object({ id: z.string() }),
        form: z.object({ ...fields, keys: listOf(keySchema) }),
      },
      async ({ viewer, params: { id }, form }) => {
        domains.find(viewer.caller, id);
        const back = backPath(viewer, form.back, `/dmarc/${id}/sources`);
        const keys = [...new Set(form.keys)];
        if (keys.length === 0) return redirectToPath(back, { bad: "Tick the sources to classify first." });
        if (keys.length > KEYS_MAX)
          return redirectToPath(back, { bad: `At most ${KEYS_MAX} sources can be classified at once.` });
        await classify(viewer, id, keys, form);
        const what = `${countText(keys.length, "source")} ${keys.length === 1 ? "is" : "are"}`;
        return redirectToPath(back, { ok: `${what} now ${classWords(form.classification)}.` });
      },
    ),
  ];
};
