// The state of the single sign-on form: saves changed fields and merges concurrent changes; renders nothing.
import { useForm, type UseFormReturnType } from "@mantine/form";
import { type ReactNode, useState } from "react";
import { useChange } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import { ApiError, toFormPath } from "../../api/error.ts";
import { type Document, mergePatch } from "../../api/merge-patch.ts";
import type { Versioned } from "../../api/queries.ts";
import { type Conflict, ConflictPrompt } from "../../parts/conflict-prompt.tsx";
import { useLeaveGuard } from "../../parts/leave-guard.tsx";
import { rules, secretOf, type Sso, type SsoValues, toBody, toValues } from "./sso-values.ts";

interface Sending {
  readonly values: SsoValues;
  readonly base: Document;
  readonly etag: string | null;
}

type Form = UseFormReturnType<SsoValues>;

export function useSsoForm(source: Versioned<Sso>) {
  const [origin, setOrigin] = useState(source);
  const form = useForm<SsoValues>({
    initialValues: toValues(source.value),
    validateInputOnChange: true,
    validate: rules,
  });
  const { mutateAsync, isPending } = useSending();
  const refusal = useRefusal(form, origin);
  useLeaveGuard(form.isDirty() && !isPending);

  /** Whether it succeeded. */
  const send = async (sending: Sending): Promise<boolean> => {
    refusal.forget();
    try {
      const { value, etag } = await mutateAsync(sending);
      setOrigin({ value, etag });
      const stored = toValues(value);
      form.setInitialValues(stored);
      form.setValues(stored);
      form.resetDirty(stored);
      return true;
    } catch (error) {
      await refusal.refuse(error, sending.values);
      return false;
    }
  };
  const save = async (): Promise<boolean> => {
    const { hasErrors, errors } = form.validate();
    if (hasErrors) {
      form.getInputNode(Object.keys(errors)[0] ?? "")?.focus();
      return false;
    }
    const base = toBody(toValues(origin.value));
    return await send({ values: form.getValues(), base, etag: origin.etag });
  };
  const prompts: ReactNode = (
    <ConflictPrompt
      conflict={refusal.conflict}
      onCancel={refusal.forget}
      onMerged={(merged, { theirs, etag }) => {
        const values = { ...form.getValues(), ...merged } as SsoValues;
        const next = { ...values, default_role: values.default_role ?? "" };
        form.setValues(next);
        void send({ values: next, base: theirs, etag });
      }}
    />
  );
  const { failure } = refusal;
  return { form, failure, prompts, save, isSaving: isPending, isDirty: form.isDirty() };
}

function useSending() {
  const connection = useConnection();
  return useChange<Sso, Sending>({
    send: ({ values, base, etag }) => {
      const body = { ...mergePatch(base, toBody(values)), ...secretOf(values) };
      return connection.send("/sso", { method: "PATCH", body, ifMatch: etag });
    },
    touches: ["sso"],
    done: ({ enabled }) => (enabled ? "Saved. Single sign-on is on" : "Saved"),
    showsErrors: true,
  });
}

/** Maps an API error to its field, the merge prompt, or the foot of the form. */
function useRefusal(form: Form, origin: Versioned<Sso>) {
  const connection = useConnection();
  const [failure, setFailure] = useState<Error | null>(null);
  const [conflict, setConflict] = useState<Conflict | null>(null);
  const merge = async (values: SsoValues) => {
    const latest = await connection.send<Sso>("/sso");
    setConflict({
      base: toBody(toValues(origin.value)),
      mine: toBody(values),
      theirs: toBody(toValues(latest.value)),
      etag: latest.etag,
    });
  };
  const refuse = async (error: unknown, values: SsoValues): Promise<void> => {
    if (!(error instanceof ApiError)) return setFailure(error as Error);
    if (error.status === 412) return await merge(values).catch(setFailure);
    const [name = ""] = toFormPath(error.field ?? "").split(".");
    if (!(name in values)) return setFailure(error);
    form.setFieldError(name, error.detail);
    form.getInputNode(name)?.focus();
  };
  const forget = () => {
    setFailure(null);
    setConflict(null);
  };
  return { failure, conflict, refuse, forget };
}
