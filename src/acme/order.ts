// One order from its start, or its stored state, to the certificate; knows no schedule and stores nothing itself.
import { generateKeyPair } from "node:crypto";
import { promisify } from "node:util";
import { type CertificateChain, readChain } from "../crypto/certificate-chain.ts";
import type { Certificate } from "../model/certificate.ts";
import type { CaClient, AcmeOrder } from "./ca-client.ts";
import { AcmeFailure, describeAcmeProblem, typeOf } from "./failure.ts";
import { poll } from "./poll.ts";
import { proveNames, type ProofParts } from "./proofs.ts";
import { nameMissingIn } from "./schedule.ts";
import type { OpenOrder } from "./state.ts";

export interface OrderJob {
  readonly certificate: Certificate;
  /** An open order of the same account for the same names. */
  readonly begun: OpenOrder | null;
  /** Id of the replaced certificate (RFC 9773 section 4.1). */
  readonly replaces: string | null;
  /** PEM; null: generate one. */
  readonly key: string | null;
}

export interface OrderParts extends ProofParts {
  readonly ca: CaClient;
  /** Stores the order, so that a restart can resume it. */
  readonly save: (order: OpenOrder | null) => void | Promise<void>;
  readonly seal: (text: string) => string;
  readonly unseal: (sealed: string) => string;
}

/** Throws an AcmeFailure. */
export async function obtain(job: OrderJob, parts: OrderParts): Promise<CertificateChain> {
  const resumed = await resume(job, parts);
  if (resumed !== null) {
    try {
      return await complete(resumed, job, parts);
    } catch (error) {
      // The CA may have looked for the responses while no process served them: that does not speak against another order.
      if (parts.signal.aborted || !isOver(error)) throw error;
    }
  }
  return await complete(await begin(job, parts), job, parts);
}

/** Whether the CA has decided against an order. */
const isOver = (error: unknown) =>
  error instanceof AcmeFailure && !error.isOutage && error.type !== "rateLimited";

async function complete(
  { order, key }: Begun,
  job: OrderJob,
  parts: OrderParts,
): Promise<CertificateChain> {
  try {
    const valid = await bringToEnd(order, { job, key }, parts);
    const { preferred_chain: own } = job.certificate;
    const preferred = own ?? parts.ca.account.preferred_chain;
    const chain = readChain(await parts.ca.download(valid, preferred), key);
    const missing = nameMissingIn(chain.certificate, job.certificate.domains);
    if (missing === undefined) return chain;
    const { host } = parts.ca;
    throw new AcmeFailure(`${host}: the issued certificate lacks the name ${missing}`);
  } catch (error) {
    // A finished order is closed: the next attempt creates a new one.
    const isJudged = !(error instanceof AcmeFailure) || !error.isOutage;
    if (isJudged && !parts.signal.aborted) await parts.save(null);
    throw error;
  }
}

interface Begun {
  readonly order: AcmeOrder;
  /** PEM. */
  readonly key: string;
}

async function begin({ certificate, replaces, key: old }: OrderJob, parts: OrderParts) {
  const { ca } = parts;
  const key = old ?? (await newKey(certificate.key_type));
  const profile = certificate.profile ?? ca.account.profile;
  const order = await ca.newOrder(certificate.domains, { profile, replaces });
  await parts.save({
    url: order.url,
    account_id: ca.account.id,
    names: [...certificate.domains],
    sealed_key: parts.seal(key),
  });
  return { order, key };
}

/** Null when it is finished, or unknown to the CA. */
async function resume({ begun }: OrderJob, parts: OrderParts): Promise<Begun | null> {
  if (begun === null) return null;
  try {
    const order = await parts.ca.order(begun.url);
    return order.status === "invalid" ? null : { order, key: parts.unseal(begun.sealed_key) };
  } catch (error) {
    if (!(error instanceof AcmeFailure) || error.isOutage || error.type === "rateLimited")
      throw error;
    return null;
  }
}

/** RFC 8555 section 7.1.6: pending, ready, processing, valid. */
async function bringToEnd(
  begun: AcmeOrder,
  { job, key }: { readonly job: OrderJob; readonly key: string },
  parts: OrderParts,
): Promise<AcmeOrder> {
  const { ca, signal } = parts;
  const next = (isDone: (order: AcmeOrder) => boolean, what: string) =>
    poll(() => ca.order(begun.url), { isDone, what, ca, signal });
  let order = begun;
  if (order.status === "pending") {
    await proveNames(order, job.certificate, parts);
    order = await next(({ status }) => status !== "pending", "the validation of the names");
  }
  if (order.status === "ready") {
    await ca.finalize(order, await requestFor(job.certificate, key));
    order = await next(
      ({ status }) => status === "valid" || status === "invalid",
      "the certificate",
    );
  }
  if (order.status === "processing")
    order = await next(({ status }) => status !== "processing", "the certificate");
  if (order.status === "valid") return order;
  const { error = {} } = order;
  throw new AcmeFailure(`${ca.host}: the order failed: ${describeAcmeProblem(error)}`, {
    type: typeOf(error),
    status: 403,
  });
}

async function requestFor({ domains }: Certificate, key: string): Promise<string> {
  const { crypto } = await import("acme-client");
  const [, request] = await crypto.createCsr({ altNames: [...domains] }, key);
  return request.toString();
}

async function newKey(type: Certificate["key_type"]): Promise<string> {
  const generate = promisify(generateKeyPair);
  const { privateKey } =
    type === "rsa"
      ? await generate("rsa", { modulusLength: 2048 })
      : await generate("ec", { namedCurve: "P-256" });
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}
