import { Badge } from "../components/badge.tsx";
import { Button, CheckField, Field, PostForm, SelectField } from "../components/form.tsx";
import { usePage } from "../context.ts";
import { type Classification, CLASSIFICATIONS } from "../../dmarc/insight/sources/rollup-store.ts";
import type { Source } from "../../dmarc/insight/sources/source-response.ts";
import { CLASS_WORDS } from "./dmarc-words.ts";

/** The choice that restores the automatic class. */
export const AUTOMATIC = "automatic";

const OPTIONS: ReadonlyArray<readonly [string, string]> = [
  ...CLASSIFICATIONS.map((one) => [one, CLASS_WORDS[one].text] as const),
  [AUTOMATIC, "Automatic"],
];

/** The path of a source's page. */
export const sourceHref = (domainId: string, key: string): string =>
  `/dmarc/${domainId}/sources/${encodeURIComponent(key.toWellFormed())}`;

export const ClassBadge = ({ classification }: { readonly classification: Classification }) => {
  const { kind, text } = CLASS_WORDS[classification];
  return <Badge kind={kind}>{text}</Badge>;
};

/** Leads back to this page after a form. */
export const BackField = () => <input type="hidden" name="back" value={usePage().url} />;

/** The class of a source, which opens a choice of another one. */
export const ClassEditor = ({ domainId, source }: { readonly domainId: string; readonly source: Source }) => (
  <details class="editor">
    <summary title={CLASS_WORDS[source.classification].meaning}>
      <ClassBadge classification={source.classification} />
      <span class="unseen">Change the class of {source.name}</span>
    </summary>
    <PostForm action={`${sourceHref(domainId, source.key)}/class`} class="inline-form">
      <BackField />
      <SelectField
        name="classification"
        label={`Class of ${source.name}`}
        isLabelHidden
        value={source.classified_by === "user" ? source.classification : AUTOMATIC}
        options={OPTIONS}
      />
      <Button>Save</Button>
    </PostForm>
  </details>
);

const BULK_FORM = "classify-sources";

/** Selects a source for the form below its table. */
export const SourceCheck = ({ source }: { readonly source: Source }) => (
  <CheckField name="keys" value={source.key} label={`Select ${source.name}`} isLabelHidden form={BULK_FORM} />
);

/** Classifies the sources that are ticked in the table above. */
export const BulkClassForm = ({ domainId }: { readonly domainId: string }) => (
  <PostForm action={`/dmarc/${domainId}/classify`} class="inline-form table-form wide-only" id={BULK_FORM}>
    <BackField />
    <SelectField name="classification" label="Class of the selected sources" options={OPTIONS} />
    <Field name="note" label="Note (optional)" placeholder="Why, for your colleagues" />
    <Button>Classify the selected</Button>
  </PostForm>
);

/** Classifies one source, with a note. */
export const ClassNoteForm = ({
  domainId,
  source,
  note,
}: {
  readonly domainId: string;
  readonly source: Source;
  readonly note: string | null;
}) => (
  <PostForm action={`${sourceHref(domainId, source.key)}/class`} class="form">
    <BackField />
    <SelectField
      name="classification"
      label="Class"
      value={source.classified_by === "user" ? source.classification : AUTOMATIC}
      options={OPTIONS}
      hint="Your class overrides the automatic one, until you choose Automatic."
    />
    <Field name="note" label="Note" value={note} hint="Why, for your colleagues." />
    <div class="actions">
      <Button kind="main">Save the class</Button>
    </div>
  </PostForm>
);
