import { usePage } from "../visit.ts";
import { Time } from "./figures.tsx";
import { Icon } from "./icon.tsx";
import { Row, Rows } from "./panel.tsx";

/** Prints the page, where scripts run. Without them the browser's own menu does. */
export const PrintButton = () => (
  <button type="button" class="button" data-print hidden>
    <Icon name="printer" />
    Print or save as PDF
  </button>
);

interface PrintHeadProps {
  /** What is printed: "Verification", "Row 7 of customers.csv". */
  readonly what: string;
  /** Where it is found again. */
  readonly id: string;
  readonly account: string;
  readonly requestedMs: number;
  /** Null while it is not finished. */
  readonly finishedMs: number | null;
}

/** What a printed page needs to stand alone: whose it is, its id, and exact times with their zone. Only on paper. */
export const PrintHead = ({ what, id, account, requestedMs, finishedMs }: PrintHeadProps) => {
  const { nowMs } = usePage();
  return (
    <section class="panel print-only">
      <Rows>
        <Row label={what}>
          <code>{id}</code>
        </Row>
        <Row label="Account">{account}</Row>
        <Row label="Requested">
          <Time atMs={requestedMs} style="full" />
        </Row>
        <Row label="Finished">{finishedMs === null ? "not finished" : <Time atMs={finishedMs} style="full" />}</Row>
        <Row label="Printed">
          <Time atMs={nowMs} style="full" />
        </Row>
      </Rows>
    </section>
  );
};
