import { z } from "zod";
import { formAction, type PageRoute } from "../page.ts";
import { redirectToPath } from "../redirect.ts";
import { backPath } from "./class-actions.ts";
import type { DmarcPageUseCases } from "./page-use-cases.ts";

const NAME_MAX = 255;
const params = z.object({ reporter: z.string().min(1).max(NAME_MAX) });
const form = z.object({ back: z.string().default("") });

/** Accept and withdraw a reporter, for all domains of the account. */
export const reporterActions = ({ acceptedReporters }: DmarcPageUseCases): readonly PageRoute[] => [
  formAction(
    { path: "/dmarc/reporters/:reporter/accept", params, form },
    async ({ viewer, params: { reporter }, form: { back } }) => {
      const { author } = await acceptedReporters.accept(viewer.caller, reporter);
      const ok = `Reports of ${author} count in advice and alerts of all your domains from now on.`;
      return redirectToPath(backPath(viewer, back, "/dmarc"), { ok });
    },
  ),
  formAction(
    { path: "/dmarc/reporters/:reporter/withdraw", params, form },
    async ({ viewer, params: { reporter }, form: { back } }) => {
      const author = await acceptedReporters.withdraw(viewer.caller, reporter);
      return redirectToPath(backPath(viewer, back, "/dmarc"), {
        ok: `${author} is not an accepted reporter any more.`,
      });
    },
  ),
];
