// The answer of a target as the client gets it: its head after plugins have seen it, its body through what they ask for; knows no exchange.
import type { Attempts } from "./attempts.ts";
import { AnswerDraft } from "./plugin/answer-draft.ts";
import type { EditedFields } from "./plugin/edited-fields.ts";
import { PipedBody } from "./plugin/piped-body.ts";
import type { Plan } from "./plan.ts";
import {
  completeResponse,
  type Piece,
  StreamedBody,
  type StreamSource,
} from "./response-builder.ts";
import { free } from "./passed-on.ts";
import { addStickyCookie } from "./sticky.ts";
import type { ResponseHead } from "./upstream/response-parser.ts";

/** Made when the head has come and no other target is to be asked. */
export class TargetAnswer {
  readonly head: ResponseHead;
  readonly #plan: Plan;
  readonly #attempts: Attempts;
  /** Null where no plugin runs. */
  readonly #draft: AnswerDraft | null;
  /** Whether bytes are counted as they come out of plugins, and not as they come from the target. */
  isPiped = false;

  constructor(head: ResponseHead, plan: Plan, attempts: Attempts) {
    this.head = head;
    this.#plan = plan;
    this.#attempts = attempts;
    this.#draft = plan.context.visit?.seesAnswers() === true ? shownToPlugins(head, plan) : null;
  }

  get status(): number {
    return this.#draft === null ? this.head.status : this.#draft.status;
  }

  /** Whether the body must be passed on as it comes, because it has to wait on its way. */
  get isSlow(): boolean {
    return this.#draft?.isSlow === true && this.head.framing !== "none";
  }

  /** Whether plugins have put another body in the place of the one that is to come. */
  get isReplaced(): boolean {
    return this.#draft !== null && this.#draft.replacement !== null;
  }

  /** With a body that is there, in pieces; those of the target are left out when they were replaced. */
  whole(pieces: readonly Piece[]): Response | Promise<Response> {
    const { head, status } = this;
    const draft = this.#draft;
    const shared = this.#sharedFields();
    if (shared !== null) return this.#shared(shared, pieces);
    const fields = this.#fields();
    const isHead = this.#plan.context.method === "HEAD";
    if (draft !== null) return this.#drafted(draft, fields, pieces);
    const { hasContentType, hasLength } = head;
    return completeResponse({ status, fields, hasContentType, hasLength, isHead }, pieces);
  }

  /** As plugins want it. */
  #drafted(
    draft: AnswerDraft,
    fields: Headers,
    pieces: readonly Piece[],
  ): Response | Promise<Response> {
    const { status } = this;
    const isHead = this.#plan.context.method === "HEAD";
    const { replacement, pipe } = draft;
    if (replacement !== null) fields.delete("content-length");
    const own = replacement === null ? pieces : replacement.body === null ? [] : [replacement.body];
    const answer = (all: readonly Piece[]) => {
      // What came from the target was counted as it came, and is not what goes to the client.
      if (pipe !== null || replacement !== null)
        this.#plan.context.record.bytesOut = draft.hasBody ? sizeOf(all) : 0;
      return completeResponse(
        {
          status,
          fields,
          hasContentType: fields.has("content-type"),
          hasLength: fields.has("content-length"),
          isHead,
          // Whoever has put a body in the place of the target's may keep it.
          isShared: replacement !== null,
        },
        draft.hasBody ? all : [],
      );
    };
    if (pipe === null || !draft.hasBody) return answer(own);
    if (!pipe.isObserver) fields.delete("content-length");
    const changed = pipe.whole(own);
    const goOn = (all: readonly Piece[]) => {
      if (replacement === null) freeUnused(own, all);
      return answer(all);
    };
    return changed instanceof Promise ? changed.then(goOn) : goOn(changed);
  }

  /** The body of the target as it is. */
  #shared(fields: EditedFields, pieces: readonly Piece[]): Response {
    const isHead = this.#plan.context.method === "HEAD";
    const { headers, hasContentType, hasLength } = fields;
    const hasBody = this.#draft?.hasBody === true;
    return completeResponse(
      { status: this.status, fields: headers, hasContentType, hasLength, isHead },
      hasBody ? pieces : [],
    );
  }

  /** With a body that follows as it comes. */
  streamed(source: StreamSource): { response: Response; body: StreamedBody | PipedBody } {
    const pipe = this.#draft?.pipe ?? null;
    const { record } = this.#plan.context;
    this.isPiped = pipe !== null;
    if (pipe !== null) record.bytesOut = 0;
    const body =
      pipe === null
        ? new StreamedBody(source)
        : new PipedBody(source, pipe, (bytes) => {
            record.bytesOut += bytes;
          });
    const fields = this.#fields();
    if (pipe?.isObserver === false) fields.delete("content-length");
    const response = new Response(body.stream, { status: this.status, headers: fields });
    return { response, body };
  }

  /** Where plugins have only set fields and nobody else adds any, the same object serves all answers that look the same. */
  #sharedFields(): EditedFields | null {
    const draft = this.#draft;
    const { context, debugFields, service } = this.#plan;
    if (draft === null || !draft.isPlain || debugFields !== null || service.sticky !== null)
      return null;
    if (context.tellsId) draft.tellId(context.id);
    return draft.editedFields;
  }

  /** The target's fields, and ours when somebody looks for what happened. */
  #fields(): Headers {
    const { debugFields, service } = this.#plan;
    const draft = this.#draft;
    const cookie = service.sticky === null ? null : this.#attempts.stickyCookie();
    const { context } = this.#plan;
    const { tellsId } = context;
    if (debugFields === null && cookie === null && draft === null)
      return tellsId ? withId(this.head, context.id) : this.head.fields;
    const fields = draft === null ? new Headers(this.head.fields) : draft.headers;
    if (tellsId) fields.set("X-Request-Id", context.id);
    if (cookie !== null) addStickyCookie(fields, cookie);
    for (const [name, value] of debugFields ?? []) fields.set(name, value);
    if (debugFields !== null) fields.set("X-Sluice-Target", this.#attempts.target?.id ?? "");
    return fields;
  }
}

/** A Response copies its fields at once, so that one object serves all answers with the same head. */
function withId(head: ResponseHead, id: string): Headers {
  head.scratch ??= new Headers(head.fields);
  head.scratch.set("X-Request-Id", id);
  return head.scratch;
}

const sizeOf = (pieces: readonly Piece[]) =>
  pieces.reduce((sum, { byteLength }) => sum + byteLength, 0);

/** Gives the memory of pieces back that are not part of what goes out. */
function freeUnused(before: readonly Piece[], after: readonly Piece[]): void {
  const used = new Set(after.map(({ buffer }) => buffer));
  free(before.filter(({ buffer }) => !used.has(buffer)));
}

function shownToPlugins(head: ResponseHead, { context }: Plan): AnswerDraft {
  const draft = new AnswerDraft({
    source: "upstream",
    status: head.status,
    // Kept for the next answer that looks the same.
    headers: head.fields,
    sharedBy: head,
    bodyLength: head.framing === "length" ? head.length : head.framing === "none" ? 0 : null,
    isHead: context.method === "HEAD",
  });
  context.visit?.respond(draft);
  return draft;
}
