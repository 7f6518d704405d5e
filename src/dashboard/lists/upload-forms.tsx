import { LIST_BYTES_MAX } from "../../bulk/arrival/upload.ts";
import { ROWS_MAX } from "../../bulk/reading/csv.ts";
import { Button, Field, TextAreaField, UploadForm } from "../components/form.tsx";
import { Icon } from "../components/icon.tsx";
import { bytesText, numberText } from "../components/number.tsx";

/** Where both forms send their list. */
export const UPLOAD_PATH = "/lists/upload";

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
