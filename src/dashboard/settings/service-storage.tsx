import { Badge } from "../components/badge.tsx";
import { Button, PostForm } from "../components/form.tsx";
import { bytesText } from "../components/number.tsx";
import { Panel, Row, Rows } from "../components/panel.tsx";
import { Time } from "../components/time.tsx";
import type { ServiceFacts } from "./service-facts.ts";

export const BACKUP_PATH = "/settings/service/backup";

/** Scheduled backups, and the button for one now. */
export const Backups = ({ backups }: ServiceFacts) => (
  <Panel title="Backups">
    {backups === null ? (
      <p>
        <Badge kind="warn">None</Badge> Set <code>POSTWARDEN_BACKUP_DIR</code> to a directory on another disk. Backups
        are then written daily.
      </p>
    ) : (
      <>
        {backups.problem !== null && (
          <p>
            <Badge kind="bad">Failed</Badge> {backups.problem}
          </p>
        )}
        {backups.stored.length === 0 ? (
          <p>No backup was seen yet. The directory is looked at every minute.</p>
        ) : (
          <ul class="plain-list">
            {backups.stored.slice(0, 7).map(({ file, atMs }) => (
              <li key={file}>
                <Time atMs={atMs} style="full" />{" "}
                <span class="soft small">
                  (<Time atMs={atMs} />)
                </span>
              </li>
            ))}
          </ul>
        )}
        <PostForm action={BACKUP_PATH}>
          <Button icon="server" isDisabled={backups.isRequested}>
            {backups.isRequested ? "A backup begins within a minute" : "Back up now"}
          </Button>
        </PostForm>
      </>
    )}
  </Panel>
);

/** What is on the disk. */
export const Sizes = ({ sizes, disk }: ServiceFacts) => (
  <Panel title="Data" isFlush>
    <Rows>
      {sizes.map(({ what, bytes }) => (
        <Row key={what} label={what}>
          {bytesText(bytes)}
        </Row>
      ))}
      {disk !== null && (
        <Row label="Free on the disk">
          {bytesText(disk.freeBytes)} of {bytesText(disk.totalBytes)}
        </Row>
      )}
    </Rows>
  </Panel>
);

/** How long things are kept. */
export const Kept = ({ retention }: ServiceFacts) => (
  <Panel title="Retention" isFlush>
    <Rows>
      {retention.map(({ what, days }) => (
        <Row key={what} label={what}>
          {days === null ? "for good" : `${days} days`}
        </Row>
      ))}
    </Rows>
  </Panel>
);
