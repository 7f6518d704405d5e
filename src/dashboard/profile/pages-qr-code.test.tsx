import { expect, test } from "bun:test";
import { renderToString } from "preact-render-to-string";
import { renderSVG } from "uqr";
import { QrCode } from "./pages.tsx";

const URI = "otpauth://totp/Postwarden:ada@example.com?issuer=Postwarden&secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";
const pathOf = (svg: string): string => / d="([^"]+)"/.exec(svg)?.[1]?.replaceAll(",", " ") ?? "none";

test("draws what the package draws, upright, with a quiet zone and a name", () => {
  const drawn = renderToString(<QrCode text={URI} label="QR code" />);
  expect(pathOf(drawn)).toBe(pathOf(renderSVG(URI, { ecc: "M", border: 4, pixelSize: 1 })));
  expect(pathOf(drawn)).toStartWith("M4 4h1v1h-1z");
  expect(drawn).toContain('role="img" aria-label="QR code"');
  expect(drawn).not.toContain("style");
});
