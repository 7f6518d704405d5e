import { z } from "zod";
import { AppError } from "../../foundation/base/errors.ts";
import type { Clock } from "../../foundation/base/clock.ts";
import { HEADER_CHOICES } from "../../bulk/reading/columns-address.ts";
import type { DraftLayout } from "../../bulk/arrival/drafts.ts";
import { uploadOptionsSchema } from "../../bulk/results/schemas.ts";
import { discardBody, LIST_BYTES_MAX } from "../../bulk/arrival/upload.ts";
import { Icon } from "../components/icon.tsx";
import { ButtonLink } from "../components/inline.tsx";
import { PageHead, Panel, Empty } from "../components/panel.tsx";
import { formAction, type PageRoute, page, uploadAction } from "../page.ts";
import { type View, type Viewer, redirectTo } from "../visit.ts";
import { DISCARD_PATH, DraftPage, START_PATH } from "./draft-page.tsx";
import type { ListUseCases } from "./list-facts.tsx";
import { ROWS_MAX } from "../../bulk/reading/csv.ts";
import { Button, Field, TextAreaField, UploadForm } from "../components/form.tsx";
import { bytesText, numberText } from "../components/figures.tsx";

/** Where both forms send their list. */
const UPLOAD_PATH = "/lists/upload";

const ACCEPTED = ".csv,.tsv,.txt,.xlsx,text/csv,text/plain";

/** The two ways to hand over a list: a file, or addresses that are pasted. Nothing is verified before the next page. */
export const UploadForms = () => (
  <div class="two-ways">
    <UploadForm action={UPLOAD_PATH}>
      <div class="drop" data-drop="submit" data-bytes-max={LIST_BYTES_MAX}>
        <p class="drop-title">
          <Icon name="upload" /> Drop a file here, or choose one
        </p>
        <p class="soft small">
          CSV or Excel (.xlsx), up to {numberText(ROWS_MAX)} rows and {bytesText(LIST_BYTES_MAX)}. The column of
          addresses is found by itself.
        </p>
        <Field name="file" type="file" label="File with addresses" accept={ACCEPTED} isLabelHidden isRequired />
        <p class="small" data-files />
        <p class="error" data-too-large hidden role="alert">
          This file has more than {bytesText(LIST_BYTES_MAX)}. Split it, or remove columns that are not needed.
        </p>
        <Button kind="main">Upload and preview</Button>
      </div>
    </UploadForm>
    <UploadForm action={UPLOAD_PATH} class="form paste">
      <TextAreaField
        name="file"
        label="Or paste addresses"
        hint="One on each line, or separated by commas or semicolons; names may stand beside them."
        placeholder={"ada@example.com\nGrace <grace@example.org>"}
        rows={6}
        isMono
        isRequired
      />
      <div class="actions">
        <Button>Preview</Button>
      </div>
    </UploadForm>
  </div>
);

const { column, encoding, sheet, name, source, webhook_url } = uploadOptionsSchema.shape;

const draftQuery = z.object({
  draft: z.uuid().optional(),
  column,
  header: z.enum(HEADER_CHOICES).default("auto"),
  encoding,
  sheet,
});

/** An empty field is one that was left out. */
const unlessEmpty = <S extends z.ZodType>(schema: S) =>
  z.preprocess((given) => (typeof given === "string" && given.trim() === "" ? undefined : given), schema);

const startForm = z.object({
  draft: z.uuid(),
  column: unlessEmpty(column),
  header: z.enum(HEADER_CHOICES),
  encoding: unlessEmpty(encoding),
  sheet: unlessEmpty(sheet),
  mail: z.literal("on").optional(),
  name: unlessEmpty(name),
  source: unlessEmpty(source),
  webhook_url: unlessEmpty(webhook_url),
});

const discardForm = z.object({ draft: z.uuid() });

const EXPIRED: View = {
  title: "Upload expired",
  section: "lists",
  status: 404,
  body: (
    <Empty
      title="This upload is no longer here"
      isPage
      action={
        <ButtonLink href="/lists/new" kind="main" icon="upload">
          Upload it again
        </ButtonLink>
      }
    >
      <p>
        Uploads are kept for one hour and are deleted when the service restarts; newer uploads replace the oldest.
        Nothing was verified or charged.
      </p>
    </Empty>
  ),
};

const newView: View = {
  title: "New list",
  section: "lists",
  body: (
    <>
      <PageHead title="New list" crumbs={[["Lists", "/lists"]]} />
      <Panel title="Verify a list">
        <UploadForms />
      </Panel>
    </>
  ),
};

const isNotFound = (error: unknown): boolean => error instanceof AppError && error.code === "not_found";

/** The address of a user who can be mailed at the end of a list; null when none can. Test lists send no mail. */
const mailTo = (bulk: ListUseCases["bulk"], { mode, user }: Viewer): string | null =>
  mode === "live" && bulk.mailProblem(user.email) === null ? user.email : null;

/** The preview of an upload, or the list that it has become. */
const viewDraft = async (
  { bulk, creditsThisMonth }: ListUseCases,
  viewer: Viewer,
  { id, layout }: { readonly id: string; readonly layout: DraftLayout },
): Promise<View | Response> => {
  try {
    const draft = bulk.drafts.get(viewer.caller, id);
    if (draft.jobId !== null) return redirectTo(viewer, `/lists/${draft.jobId}`);
    const read = await bulk.drafts.preview(viewer.caller, id, layout);
    const usedThisMonth = await creditsThisMonth(viewer.caller);
    const props = { draft, layout, read, usedThisMonth, isTest: viewer.mode === "test", mailTo: mailTo(bulk, viewer) };
    return { title: draft.fileName ?? "Pasted addresses", section: "lists", body: <DraftPage {...props} /> };
  } catch (error) {
    if (isNotFound(error)) return EXPIRED;
    throw error;
  }
};

/** The same after its form was refused. */
const viewDraftAgain = async (useCases: ListUseCases, viewer: Viewer, values: unknown): Promise<View> => {
  const { draft, ...layout } = z
    .object({
      draft: z.uuid(),
      column: unlessEmpty(column).catch(undefined),
      header: draftQuery.shape.header.catch("auto"),
      encoding: unlessEmpty(encoding).catch(undefined),
      sheet: unlessEmpty(sheet).catch(undefined),
    })
    .catch({ draft: "", column: undefined, header: "auto", encoding: undefined, sheet: undefined })
    .parse(values);
  const view = await viewDraft(useCases, viewer, { id: draft, layout });
  return view instanceof Response ? EXPIRED : view;
};

/** Uploading a list, looking at it, and starting it. */
export const createDraftPages = (useCases: ListUseCases, clock: Clock): PageRoute[] => {
  const { bulk } = useCases;
  return [
    uploadAction(
      { path: UPLOAD_PATH },
      async ({ request, viewer }) => {
        try {
          const { id } = await bulk.drafts.receive(viewer.caller, request);
          return redirectTo(viewer, `/lists/new?draft=${id}`);
        } catch (error) {
          await discardBody(request, clock);
          throw error;
        }
      },
      { rerender: () => newView },
    ),
    page({ path: START_PATH, query: draftQuery }, ({ viewer, query: { draft, ...layout } }) =>
      draft === undefined ? newView : viewDraft(useCases, viewer, { id: draft, layout }),
    ),
    formAction(
      { path: START_PATH, form: startForm },
      async ({ viewer, form: { draft, mail, ...options } }) => {
        const notify = mail === undefined ? null : mailTo(bulk, viewer);
        try {
          const order = notify === null ? options : { ...options, notify_email: notify };
          // The page of the list says that it runs, as long as it does.
          return redirectTo(viewer, `/lists/${await bulk.startDraft(viewer.caller, draft, order)}`);
        } catch (error) {
          if (isNotFound(error)) return EXPIRED;
          throw error;
        }
      },
      { rerender: ({ viewer, values }) => viewDraftAgain(useCases, viewer, values) },
    ),
    formAction({ path: DISCARD_PATH, form: discardForm }, async ({ viewer, form }) => {
      await bulk.drafts.discard(viewer.caller, form.draft).catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
      return redirectTo(viewer, "/lists", { ok: "The upload is deleted." });
    }),
  ];
};
