// The form state of one object: validation, API errors at their fields, drafts, merging; renders no field.
import {
  type FormErrors,
  type FormRulesRecord,
  type UseFormReturnType,
  useForm,
} from "@mantine/form";
import { useDebouncedCallback } from "@mantine/hooks";
import { type ReactNode, useState } from "react";
import { useSave } from "../api/changes.tsx";
import { useConnection } from "../api/connection-context.ts";
import type { SendOptions } from "../api/connection.ts";
import { ApiError, toFormPath } from "../api/error.ts";
import {
  differences,
  type Document,
  isSame,
  mergePatch,
  valueAt,
  withValueAt,
} from "../api/merge-patch.ts";
import type { Versioned } from "../api/queries.ts";
import type { Read, ResourceKey, Write } from "../api/resources.ts";
import { type Conflict, ConflictPrompt, contested } from "./conflict-prompt.tsx";
import { dropDraft, loadDraft, storeDraft } from "./drafts.ts";
import { useLeaveGuard } from "./leave-guard.tsx";
import { focusField } from "./schema/focus.ts";

export interface FormOptions<T extends object, V extends object> {
  /** The object and its ETag as read; null: the form creates one. */
  readonly source: Versioned<T> | null;
  /** The initial object of a new one: a clone, or null. */
  readonly template?: Partial<T>;
  /** Values of the form; missing fields get their defaults. */
  readonly toValues: (object: Partial<T>) => V;
  /** The whole object as written. Undefined fields are not sent. */
  readonly toBody: (values: V) => object;
  /** Validation while typing; the gateway validates again. */
  readonly validate?: FormRulesRecord<V, V> | ((values: V) => FormErrors);
  /** Maps an API field to a form path; default: the same path. */
  readonly fieldOf?: (field: string) => string;
  /** Maps an API error without a field to a form field; null: none. */
  readonly fieldErrorOf?: (
    error: ApiError,
  ) => { readonly field: string; readonly text: string } | null;
  /** Whether the form shows errors at a path; default: of fields that have a value. */
  readonly hasField?: (path: string, values: V) => boolean;
  /** Fields with secrets, which are never stored in drafts. */
  readonly secrets?: readonly (keyof V)[];
  /** The same for secrets nested in other fields. Absent: none. */
  readonly withoutSecrets?: (values: V) => V;
}

export interface ResourceFormOptions<K extends ResourceKey, V extends object> extends FormOptions<
  Read<K>,
  V
> {
  readonly resource: K;
  readonly toBody: (values: V) => Write<K>;
  /** Query of the saving request, such as `{ adopt: 1 }`. */
  readonly query?: SendOptions["query"];
  /** Distinguishes drafts of new objects; default: one. */
  readonly draftKey?: string;
  readonly onSaved: (object: Read<K>) => void;
}

export interface ResourceForm<V extends object> {
  readonly form: UseFormReturnType<V>;
  /** For `<form onSubmit>`; FormPage accepts the whole object. */
  readonly submit: (event?: React.FormEvent<HTMLFormElement>) => void;
  readonly isSaving: boolean;
  readonly isDirty: boolean;
  /** An error without a field. */
  readonly failure: Error | null;
  /** Whether the values were restored from a draft. */
  readonly isRestored: boolean;
  /** Whether the draft lacks entered secrets. */
  readonly hasSecrets: boolean;
  /** Resets to the stored object. */
  readonly discard: () => void;
  /** Dialogs, rendered by FormPage. */
  readonly prompts: ReactNode;
}

/** The whole behavior of a resource form, without rendering. */
export function useResourceForm<K extends ResourceKey, V extends object>(
  options: ResourceFormOptions<K, V>,
): ResourceForm<V> {
  const { resource, source, query = {}, draftKey = "new", onSaved } = options;
  const { mutateAsync, isPending } = useSave(resource);
  const connection = useConnection();
  return useFormState<Read<K>, V>(options, {
    key: `${resource}:${source?.value.id ?? draftKey}`,
    keyOf: ({ id }) => `${resource}:${id}`,
    isSaving: isPending,
    read: ({ id }) => connection.send(`/${resource}/${encodeURIComponent(id)}`),
    send: (body, origin, etag) => mutateAsync({ id: origin?.value.id ?? null, body, etag, query }),
    // The guard is removed when the form renders again.
    onSaved: (saved) => void setTimeout(() => onSaved(saved)),
  });
}

/** Where a form is saved. */
export interface FormStore<T extends object> {
  /** Of its draft. */
  readonly key: string;
  /** Key of the draft of what it has created. */
  readonly keyOf?: (object: T) => string;
  readonly isSaving: boolean;
  readonly read: (object: T) => Promise<Versioned<T>>;
  /** Creates without an origin, else patches. */
  readonly send: (
    body: Document,
    origin: Versioned<T> | null,
    etag: string | null,
  ) => Promise<Versioned<T>>;
  readonly onSaved: (object: T) => void;
}

/** The state of any form; `origin` is the version that it was opened with. */
export function useFormState<T extends object, V extends object>(
  options: FormOptions<T, V>,
  store: FormStore<T>,
): ResourceForm<V> & {
  readonly origin: Versioned<T> | null;
  readonly reset: (to: Versioned<T> | null) => void;
} {
  const { toValues, validate, source, template = {} as Partial<T> } = options;
  const draft = useDraft(options, store.key);
  const { origin } = draft;
  const start = toValues(origin?.value ?? template);
  const form = useForm<V>({
    initialValues: start,
    validateInputOnChange: typeof validate !== "function",
    ...(validate === undefined ? {} : { validate }),
    onValuesChange: draft.keep,
  });
  // Once: useForm treats its first values as unchanged.
  useState(() => {
    if (draft.values !== null) form.setValues({ ...start, ...draft.values });
  });
  const isDirty = form.isDirty();
  const reset = (to: Versioned<T> | null, typed: V | null = null) => {
    draft.drop();
    draft.setOrigin(to);
    const values = toValues(to?.value ?? template);
    form.setInitialValues(values);
    form.setValues(typed ?? values);
    form.resetDirty(values);
  };
  const saving = useSaving(options, store, { form, origin, reset });
  useLeaveGuard(isDirty && !store.isSaving);
  return {
    form,
    isDirty,
    isSaving: store.isSaving,
    ...saving,
    origin,
    reset,
    isRestored: draft.isRestored,
    hasSecrets: options.secrets !== undefined || options.withoutSecrets !== undefined,
    discard: () => {
      saving.forget();
      form.clearErrors();
      reset(source);
    },
    submit: form.onSubmit(saving.submit, (errors) => focus(form, Object.keys(errors))),
  };
}

function focus<V extends object>(form: UseFormReturnType<V>, paths: readonly string[]): void {
  const [path = ""] = paths;
  const input = form.getInputNode(path) ?? form.getInputNode(path.replace(/\.\d+$/, ""));
  if (input === null) focusField(document.body, paths);
  else input.focus();
}

/** The draft, and the version that its form was opened with. */
function useDraft<T extends object, V extends object>(options: FormOptions<T, V>, key: string) {
  const [stored] = useState(() => loadDraft<V>(key));
  const [isRestored, setRestored] = useState(stored !== null);
  const [origin, setOrigin] = useState(
    () => (stored?.origin as Versioned<T> | null | undefined) ?? options.source,
  );
  const { toValues, template = {} as Partial<T> } = options;
  const keep = useDebouncedCallback((values: V) => {
    // A saved object is no draft; saving resets the form to it.
    if (isSame(values, toValues(origin?.value ?? template))) dropDraft(key);
    else storeDraft(key, { values: toDraft(values, options), origin });
  }, 400);
  return {
    origin,
    setOrigin,
    isRestored,
    values: stored?.values ?? null,
    keep,
    drop: () => {
      keep.cancel();
      dropDraft(key);
      setRestored(false);
    },
  };
}

interface Sent<V> {
  readonly mine: Document;
  /** Null: the form creates. */
  readonly base: Document | null;
  readonly etag: string | null;
  /** The values of the form at that time. */
  readonly sent: V;
}

interface SavingDeps<T extends object, V extends object> {
  readonly form: UseFormReturnType<V>;
  readonly origin: Versioned<T> | null;
  readonly reset: (to: Versioned<T>, typed: V | null) => void;
}

/** The saved values with what was typed while they were on their way; null: nothing. */
function withTyped<V extends object>(saved: V, sent: V, now: V): V | null {
  if (isSame(sent, now)) return null;
  const [before, typed] = [sent as Document, now as Document];
  return differences(before, typed).reduce(
    (values, path) => withValueAt(values, path, valueAt(typed, path)),
    saved as Document,
  ) as V;
}

/** Sends the form's values and maps API errors to fields. */
function useSaving<T extends object, V extends object>(
  options: FormOptions<T, V>,
  store: FormStore<T>,
  { form, origin, reset }: SavingDeps<T, V>,
) {
  const { toValues, toBody, fieldOf, fieldErrorOf } = options;
  const { hasField = (path, values) => hasValue(values, path) } = options;
  const [failure, setFailure] = useState<Error | null>(null);
  const [conflict, setConflict] = useState<Conflict | null>(null);
  const bodyOf = (object: Partial<T>) => toBody(toValues(object)) as Document;

  const refuse = async (error: unknown, mine: Document, sent: V): Promise<void> => {
    if (!(error instanceof ApiError)) return setFailure(error as Error);
    if (error.status === 412 && origin !== null) {
      const latest = await store.read(origin.value);
      const theirs = bodyOf(latest.value);
      const found = { base: bodyOf(origin.value), mine, theirs, etag: latest.etag };
      // No field of this form changed, so there is nothing to merge.
      if (contested(found).length === 0)
        return save({ mine, base: theirs, etag: latest.etag, sent });
      return setConflict(found);
    }
    const found = fieldErrorOf?.(error) ?? null;
    const field =
      found?.field ??
      (error.field === null ? "" : toFormPath(fieldOf?.(error.field) ?? error.field));
    if (!hasField(field, form.getValues())) return setFailure(error);
    const text = found?.text ?? error.detail;
    form.setFieldError(field, text);
    // List inputs show the error of one item for the whole list.
    const list = field.replace(/\.\d+$/, "");
    if (list !== field) form.setFieldError(list, text);
    focus(form, [field]);
  };

  const save = async ({ mine, base, etag, sent }: Sent<V>) => {
    setFailure(null);
    try {
      const body = base === null ? mine : mergePatch(base, mine);
      const saved = await store.send(body, origin, etag);
      const typed = withTyped(toValues(saved.value), sent, form.getValues());
      // The page of what was created has a form of its own, which begins with the draft.
      if (origin === null && typed !== null && store.keyOf !== undefined)
        storeDraft(store.keyOf(saved.value), { values: toDraft(typed, options), origin: saved });
      reset(saved, origin === null ? null : typed);
      store.onSaved(saved.value);
    } catch (error) {
      await refuse(error, mine, sent).catch(setFailure);
    }
  };

  const merge = (merged: Document, { theirs, etag }: Conflict) => {
    setConflict(null);
    const sent = toValues(merged as Partial<T>);
    form.setValues(sent);
    void save({ mine: merged, base: theirs, etag, sent });
  };

  return {
    failure,
    forget: () => setFailure(null),
    submit: (values: V) => {
      const base = origin === null ? null : bodyOf(origin.value);
      const mine = toBody(values) as Document;
      void save({ mine, base, etag: origin?.etag ?? null, sent: values });
    },
    prompts: (
      <ConflictPrompt conflict={conflict} onCancel={() => setConflict(null)} onMerged={merge} />
    ),
  };
}

function toDraft<T extends object, V extends object>(
  values: V,
  { secrets = [], withoutSecrets }: FormOptions<T, V>,
): V {
  const copy = withoutSecrets?.(values) ?? { ...values };
  for (const name of secrets) delete copy[name];
  return copy;
}

/** Whether the form knows the found: `targets.0.port`. */
export function hasValue(values: object, path: string): boolean {
  let value: unknown = values;
  for (const name of path.split(".")) {
    if (typeof value !== "object" || value === null || !(name in value)) return false;
    value = (value as Record<string, unknown>)[name];
  }
  return true;
}

/** A copy of an object without unique fields, to clone it. */
export function cloneOf<T extends object>(object: T): Partial<T> {
  const copy = { ...object } as Record<string, unknown>;
  for (const field of ["id", "created_at", "updated_at", "custom_id"]) delete copy[field];
  for (const field of ["name", "label", "username"])
    if (typeof copy[field] === "string" && copy[field] !== "") copy[field] = `${copy[field]} copy`;
  return copy as Partial<T>;
}
