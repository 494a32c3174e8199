// Asks an address for a token over HTTP, as an authority would, and says in words who answers; knows no order.
import { isIP } from "node:net";
import { quote, readText, reasonOf } from "../auth/sso/provider-request.ts";

/** What the gateway shows under a token. */
export interface ProbeProof {
  readonly token: string;
  readonly answer: string;
}

/** Has all workers show it; the function takes it down again. */
export type ShowProbe = (proof: ProbeProof) => Promise<() => void>;

export type ProbeOutcome =
  | { readonly kind: "reached" }
  /** Somebody answers, but not this gateway. */
  | { readonly kind: "other"; readonly message: string }
  /** Nobody answers, or there is a detour: seen from elsewhere that may be different. */
  | { readonly kind: "unclear"; readonly message: string };

const TIMEOUT_MS = 5000;
const MAX_BYTES = 4096;

export async function probe(
  proof: ProbeProof,
  at: { readonly name: string; readonly address: string; readonly port: number },
): Promise<ProbeOutcome> {
  const host = isIP(at.address) === 6 ? `[${at.address}]` : at.address;
  const where = `${at.address}, port ${at.port},`;
  try {
    const response = await fetch(
      `http://${host}:${at.port}/.well-known/acme-challenge/${proof.token}`,
      {
        headers: { host: at.port === 80 ? at.name : `${at.name}:${at.port}` },
        redirect: "manual",
        signal: AbortSignal.timeout(TIMEOUT_MS),
      },
    );
    const text = await readText(response, MAX_BYTES);
    if (response.status === 200 && text?.trim() === proof.answer) return { kind: "reached" };
    if (response.status >= 300 && response.status < 400) {
      const to = quote(response.headers.get("location"), []);
      return {
        kind: "unclear",
        message: `${where} redirects to ${to}: it must lead to this gateway`,
      };
    }
    return {
      kind: "other",
      message: `${where} answers with status ${response.status} and not as this gateway: another server is there`,
    };
  } catch (error) {
    return { kind: "unclear", message: `${where} ${reasonOf(error, { timeoutMs: TIMEOUT_MS })}` };
  }
}
