import type { DomainRow } from "../dmarc/records/domains/domain-store.ts";
import { createApps, type TestApp, type TestAppOptions } from "./app.ts";
import { signIn, type TestPage, type Visitor } from "./dashboard.ts";
import type { ZoneFailure, ZoneRecords } from "./dns-zone.ts";

export const REPORTS_AT = "reports.postwarden-lab.com";

/** A service with a signed-in visitor, whose DNS a test changes. */
export interface DmarcPages {
  readonly app: TestApp;
  readonly visitor: Visitor;
  readonly zone: Record<string, ZoneRecords | ZoneFailure>;
  readonly get: Visitor["get"];
  readonly enrol: (domain: string, visitor?: Visitor) => Promise<DomainRow>;
  /** Uploads files as the form of the pages does. */
  readonly upload: (
    files: ReadonlyArray<readonly [name: string, content: string | Uint8Array<ArrayBuffer>]>,
    path?: string,
  ) => Promise<TestPage>;
  /** The record with the reporting address of a domain. */
  readonly recordOf: (domain: DomainRow, tags?: string) => string;
}

/** Starts services for tests of pages about DMARC. */
export const createDmarcPages = () => {
  const start = createApps();
  return async (options: TestAppOptions = {}): Promise<DmarcPages> => {
    const zone: DmarcPages["zone"] = { ...options.zone };
    const app = start({ ...options, zone, settings: { REPORT_HOST: REPORTS_AT, ...options.settings } });
    const visitor = await signIn(app);
    return {
      ...{ app, visitor, zone, get: visitor.get },
      async enrol(domain, { accountId } = visitor) {
        const request = { domain, label: null, webhookUrl: null, recipients: [], tags: [] };
        zone[`${domain}._report._dmarc.${REPORTS_AT}`] ??= { TXT: ["v=DMARC1;"] };
        return (await app.service.dmarc.domains.enrol({ accountId, mode: "live" }, request)).domain;
      },
      upload(files, path = "/dmarc/intake") {
        const form = new FormData();
        for (const [name, content] of files) form.append("file", new File([content], name));
        return visitor.upload(path, form);
      },
      recordOf: ({ token }, tags = "p=none") => `v=DMARC1; ${tags}; rua=mailto:${token}@${REPORTS_AT}`,
    };
  };
};
