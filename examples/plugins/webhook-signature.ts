// webhook-signature: accepts only webhooks that GitHub or Stripe has signed, and each of Stripe's for five minutes.
// https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries
// https://docs.stripe.com/webhooks#verify-manually
import { createHmac, timingSafeEqual } from "node:crypto";
import { config, definePlugin, integer, oneOf, reject, secret, stays } from "@sluice/plugin";

const HEADERS = { github: "x-hub-signature-256", stripe: "stripe-signature" } as const;

function isSame(hexadecimal: string, expected: Buffer): boolean {
  const sent = Buffer.from(hexadecimal, "hex");
  return sent.byteLength === expected.byteLength && timingSafeEqual(sent, expected);
}

export default definePlugin({
  name: "webhook-signature",
  summary: "Verifies the signatures of webhooks from GitHub and Stripe",
  description:
    "Requests without a valid signature get 401 and do not reach the target. The body is read into memory for it.",
  group: "authentication",
  order: 8650,
  phases: ["auth"],
  scopes: ["route", "service"],
  config: config({
    sender: oneOf(["github", "stripe"], { description: "Who sends the webhooks" }),
    secret: stays(
      "it is only compared",
      secret({ description: "Signing secret, as the sender shows it" }),
    ),
    tolerance: integer(300, {
      minimum: 1,
      maximum: 86_400,
      description: "Stripe: age in seconds up to which a signature is valid",
    }),
    max_body: integer(26_214_400, {
      minimum: 1,
      maximum: 67_108_864,
      description: "Longest body in bytes; longer ones get 413",
    }),
  }),
  example: { sender: "github", secret: "a long random text" },
  onError: "closed",
  create(own, kit) {
    const hmac = () => createHmac("sha256", own.secret);
    const isFromGithub = (header: string, body: Uint8Array) =>
      header.startsWith("sha256=") && isSame(header.slice(7), hmac().update(body).digest());
    const isFromStripe = (header: string, body: Uint8Array) => {
      const parts = header
        .split(",")
        .map((part) => part.trim().split("=") as [string, string | undefined]);
      const time = parts.find(([name]) => name === "t")?.[1] ?? "";
      const age = Math.abs(kit.counters.now() / 1000 - Number(time));
      if (!/^\d{1,12}$/.test(time) || age > own.tolerance) return false;
      const expected = hmac().update(`${time}.`).update(body).digest();
      return parts.some(([name, value = ""]) => name === "v1" && isSame(value, expected));
    };
    const verify = own.sender === "github" ? isFromGithub : isFromStripe;
    const denied = () =>
      reject(401, "webhook.signature", {
        detail: "the signature of the webhook is missing or not valid",
        headers: { "WWW-Authenticate": "Signature" },
      });
    return {
      auth(context) {
        const header = context.header(HEADERS[own.sender]);
        if (header === null || header.length > 4096) return denied();
        return check(header);
        async function check(sent: string) {
          const body = context.hasBody ? await context.readBody(own.max_body) : new Uint8Array();
          if (body === null)
            return reject(413, "webhook.body_too_long", { detail: "the webhook is too long" });
          if (!verify(sent, body)) return denied();
          context.authenticate(null, { credentialId: own.sender });
          return undefined;
        }
      },
    };
  },
});
