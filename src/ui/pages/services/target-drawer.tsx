// A small form for one target of a stored service; knows nothing of health.
import { useForm } from "@mantine/form";
import { useState } from "react";
import { formSchemaOf } from "../../../model/form-schema.ts" with { type: "macro" };
import { useChange } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import { ApiError, toFormPath } from "../../api/error.ts";
import { type Document, mergePatch } from "../../api/merge-patch.ts";
import { FormDrawer } from "../../parts/form-page.tsx";
import { serverOf } from "../../parts/lenient-url.ts";
import type { JsonSchema } from "../../parts/schema/shape.ts";
import { SchemaFields, schemaOptions } from "../../parts/schema-fields.tsx";
import type { Target } from "./live-targets.tsx";
import { addressOf } from "./target-weight.ts";

/** What the drawer is about; null as target: a new one. */
export interface DrawerTarget {
  readonly target: Target | null;
}

interface Props {
  readonly serviceId: string;
  /** Null: the drawer is closed. */
  readonly edited: DrawerTarget | null;
  readonly onClose: () => void;
}

export function TargetDrawer({ serviceId, edited, onClose }: Props) {
  // The content stays until the drawer has slid out.
  const [shown, setShown] = useState(edited);
  if (edited !== null && edited !== shown) setShown(edited);
  if (shown === null) return null;
  return (
    <TargetForm
      key={shown.target?.id ?? "new"}
      serviceId={serviceId}
      target={shown.target}
      isOpen={edited !== null}
      onClose={() => {
        setShown(null);
        onClose();
      }}
    />
  );
}

interface FormProps {
  readonly serviceId: string;
  readonly target: Target | null;
  readonly isOpen: boolean;
  readonly onClose: () => void;
}

const schema = formSchemaOf("targets") as JsonSchema;
const { toValues, toBody, validate } = schemaOptions(schema);

function TargetForm({ serviceId, target, isOpen, onClose }: FormProps) {
  const connection = useConnection();
  const form = useForm<Document>({ initialValues: toValues(target ?? {}), validate });
  const { mutateAsync, isPending, error, reset } = useChange<Target, Document>({
    send: (values) => {
      const body = toBody(values);
      if (target === null)
        return connection.send(`/services/${serviceId}/targets`, { method: "POST", body });
      const patch = mergePatch(toBody(toValues(target)), body);
      return connection.send(`/targets/${target.id}`, { method: "PATCH", body: patch });
    },
    touches: ["targets", `services/${serviceId}/health`],
    done: (saved) => `Target ${addressOf(saved)} ${target === null ? "added" : "saved"}`,
    showsErrors: true,
  });
  const submit = form.onSubmit(async (values) => {
    try {
      await mutateAsync(values);
      onClose();
    } catch (failure) {
      const field = failure instanceof ApiError ? toFormPath(failure.field ?? "") : "";
      if (!(field in values) || !(failure instanceof ApiError)) return;
      form.setFieldError(field, failure.detail);
      reset();
    }
  });
  return (
    <FormDrawer
      opened={isOpen}
      onClose={onClose}
      title={target === null ? "New target" : `Target ${addressOf(target)}`}
      onSubmit={submit}
      isSaving={isPending}
      failure={error}
      label={target === null ? "Add" : "Save"}
    >
      <SchemaFields
        form={form}
        schema={schema}
        isStored={target !== null}
        isReadOnly={false}
        onChange={(name, value) => {
          if (name !== "host") return;
          const { host, port } = serverOf(String(value), String(form.values["host"]));
          form.setFieldValue("host", host);
          if (port !== null) form.setFieldValue("port", port);
        }}
      />
    </FormDrawer>
  );
}
