// Completes the challenges of an order: publishes responses, notifies the CA, awaits the validation, removes responses.
import { createHash } from "node:crypto";
import { createSelfSigned } from "../crypto/x509.ts";
import type { Certificate, ChallengeType } from "../model/certificate.ts";
import type { CaClient, AcmeChallenge, AcmeOrder, Authorization } from "./ca-client.ts";
import type { ChallengeBoard, HttpProof, TlsProof } from "./challenge-board.ts";
import type { DnsProof } from "./dns-proof.ts";
import { AcmeFailure, describeAcmeProblem, typeOf } from "./failure.ts";
import { poll } from "./poll.ts";
import type { SharedExclusiveGate } from "./shared-exclusive-gate.ts";

export interface ProofParts {
  readonly ca: CaClient;
  readonly board: ChallengeBoard;
  readonly listenerGate: SharedExclusiveGate;
  /** Writes the record; resolves when the provider has accepted it. `name`: without `*.`. */
  readonly putUpRecord: (proof: {
    readonly name: string;
    readonly text: string;
  }) => Promise<DnsProof>;
  readonly signal: AbortSignal;
  /** A challenge response could not be removed. */
  readonly left: (error: unknown) => void;
}

const PROOF_DAYS = 7;

interface OpenProof {
  readonly authorization: Authorization;
  readonly challenge: AcmeChallenge & { readonly type: ChallengeType };
  readonly proof: string;
}

/** Resolves when the CA has validated all names; throws an AcmeFailure with the name that failed. */
export async function proveNames(
  order: AcmeOrder,
  certificate: Certificate,
  parts: ProofParts,
): Promise<void> {
  const { ca } = parts;
  const open: OpenProof[] = [];
  for (const authorization of await ca.authorizations(order.authorizations)) {
    if (authorization.status === "valid") continue;
    if (authorization.status !== "pending") throw refusal(authorization, parts);
    const challenge = chooseChallenge(authorization, certificate.challenge, parts);
    open.push({ authorization, challenge, proof: await ca.proofOf(challenge) });
  }
  if (open.length === 0) return;
  const takeDown = await putUp(open, certificate.challenge, parts);
  try {
    for (const proof of open) if (proof.challenge.status === "pending") await complete(proof, ca);
    await Promise.all(open.map((proof) => judged(proof, parts)));
  } finally {
    await takeDown();
  }
}

/** Notifies the CA. An earlier run may have done so, and the CA have judged since the challenge was read. */
async function complete({ authorization, challenge }: OpenProof, ca: CaClient): Promise<void> {
  try {
    await ca.complete(challenge);
  } catch (error) {
    const [now] = await ca.authorizations([authorization.url]);
    if (now === undefined || now.status === "pending") throw error;
  }
}

function chooseChallenge(
  { challenges, identifier }: Authorization,
  type: ChallengeType,
  { ca }: ProofParts,
): OpenProof["challenge"] {
  const found = challenges.find((challenge) => challenge.type === type);
  if (found !== undefined) return { ...found, type };
  const offered = challenges.map((challenge) => challenge.type).join(", ");
  throw new AcmeFailure(
    `${identifier.value}: ${ca.host} does not offer the challenge ${type}, but ${offered}`,
    { status: 403 },
  );
}

async function judged({ authorization }: OpenProof, parts: ProofParts): Promise<void> {
  const { ca, signal } = parts;
  const name = authorization.identifier.value;
  const read = async () => {
    const [now] = await ca.authorizations([authorization.url]);
    if (now === undefined) throw new AcmeFailure(`${name}: the CA has lost the order`);
    return now;
  };
  const isDone = ({ status }: Authorization) => status !== "pending";
  const result = await poll(read, { isDone, what: `the validation of ${name}`, ca, signal });
  if (result.status !== "valid") throw refusal(result, parts);
}

function refusal({ identifier, challenges, status }: Authorization, { ca }: ProofParts) {
  const error = challenges.find((challenge) => challenge.error !== undefined)?.error;
  const why = error === undefined ? `the authorization is ${status}` : describeAcmeProblem(error);
  return new AcmeFailure(`${identifier.value}: ${ca.host}: ${why}`, {
    type: error === undefined ? "" : typeOf(error),
    status: 403,
  });
}

/** Resolves when CAs can see all challenge responses, on every path. */
async function putUp(
  open: readonly OpenProof[],
  type: ChallengeType,
  parts: ProofParts,
): Promise<() => Promise<void>> {
  if (type === "dns-01") return await putUpRecords(open, parts);
  const http: HttpProof[] = [];
  const tls: TlsProof[] = [];
  for (const { authorization, challenge, proof } of open) {
    if (type === "http-01") http.push({ token: challenge.token, answer: proof });
    else tls.push(await tlsProof(authorization, proof));
  }
  const isOver = tls.length > 0 ? await parts.listenerGate.beginCheck() : () => {};
  const takeDown = await parts.board.putUp({ http, tls }).catch((cause: unknown) => {
    isOver();
    throw new AcmeFailure("a worker cannot serve the challenge response", {
      type: "unreachable",
      cause,
    });
  });
  return () => {
    takeDown();
    isOver();
    return Promise.resolve();
  };
}

/** RFC 8737 section 3: a certificate for this name only, with the digest of the key authorization. */
async function tlsProof({ identifier }: Authorization, text: string): Promise<TlsProof> {
  const name = identifier.value;
  const proof = createHash("sha256").update(text).digest();
  const pair = await createSelfSigned({
    names: [name],
    addresses: [],
    proof,
    now: Date.now(),
    validDays: PROOF_DAYS,
  });
  return { name, ...pair };
}

async function putUpRecords(
  open: readonly OpenProof[],
  { putUpRecord, left }: ProofParts,
): Promise<() => Promise<void>> {
  const records: DnsProof[] = [];
  const takeDown = async () => {
    for (const record of records) await record.takeDown().catch(left);
  };
  try {
    // Serialized: some providers replace all records of a name at once.
    for (const { authorization, proof } of open)
      records.push(await putUpRecord({ name: authorization.identifier.value, text: proof }));
    await Promise.all(records.map((record) => record.appears()));
    return takeDown;
  } catch (error) {
    await takeDown();
    throw error;
  }
}
