import { Button, UploadForm } from "../components/form.tsx";
import { Icon } from "../components/icon.tsx";
import { Panel } from "../components/panel.tsx";

const ACCEPTED = ".xml,.gz,.zip,.eml,.json,.msg,.tgz,application/gzip,application/zip,application/xml,message/rfc822";

/** Files with reports, dropped or chosen: they are read at once, and the next page says what became of each. */
export const ReportUpload = () => (
  <Panel title="Import reports">
    <UploadForm action="/dmarc/intake" class="upload">
      <div class="drop" data-drop="submit">
        <Icon name="upload" />
        <p>
          <label for="report-files">
            <b>Drop reports here</b>, or choose files
          </label>
        </p>
        <input id="report-files" type="file" name="file" multiple accept={ACCEPTED} required />
        <p class="soft small" data-files />
        <Button kind="main">Import</Button>
        <p class="soft small">
          Aggregate and TLS reports: mails (.eml), XML, JSON, gzip and zip, several at once, up to 64 MiB. The format is
          detected from the content. Reports that are stored already are recognized.
        </p>
      </div>
    </UploadForm>
  </Panel>
);
