// The form of an alert: its destination by the schema of its type, with a test and its messages.
import { formSchemaOf } from "../../../model/form-schema.ts" with { type: "macro" };
import { isDocument } from "../../api/merge-patch.ts";
import { useRead } from "../../api/queries.ts";
import type { Read, Schemas } from "../../api/resources.ts";
import type { FormStart } from "../../parts/form-page.tsx";
import { ObjectForm, type ObjectFormState } from "../../parts/object-form.tsx";
import { Can } from "../../parts/page-layout.tsx";
import type { JsonSchema } from "../../parts/schema/shape.ts";
import { schemaOfType } from "../../parts/schema-fields.tsx";
import { SecretHint } from "../../parts/secret-hint.tsx";
import { FormSkeleton } from "../../parts/skeletons.tsx";
import { AlertTest } from "./alert-test.tsx";
import { DeliveryState } from "./delivery-state.tsx";
import { MessageHistory } from "./message-history.tsx";
import { SinkField } from "./sink-field.tsx";

const schema = formSchemaOf("alerts") as JsonSchema;
const overrides = { config: SinkField };
const initial = {
  type: "webhook",
  events: ["target_down", "target_up", "certificate_failing", "certificate_expiring"],
};

export function AlertForm(start: FormStart<Read<"alerts">>) {
  const { data } = useRead<readonly Schemas["AlertType"][]>("alerts/types");
  const stored = start.source?.value ?? null;
  if (data === undefined) return <FormSkeleton />;
  /** A password without a user name is invalid. */
  const dropPassword = (name: string, value: unknown, form: ObjectFormState["form"]) => {
    const hadUser = stored?.config["username"] !== undefined;
    if (name !== "config" || !hadUser || !isDocument(value)) return;
    if (value["username"] === undefined && value["password"] === undefined)
      form.setFieldValue("config", { ...value, password: null });
  };
  return (
    <ObjectForm
      resource="alerts"
      schema={schema}
      schemaFor={({ type }) => schemaOfType(schema, data.value, type)}
      start={start}
      initial={initial}
      isClonable={false}
      text="Choose events and where to send them."
      overrides={overrides}
      onChange={dropPassword}
      actions={(alert) => <DeliveryState alert={alert} />}
      before={(alert, { isDirty }) => (
        <>
          <Can needs="editor">
            <AlertTest id={alert.id} isDirty={isDirty} />
          </Can>
          <MessageHistory id={alert.id} />
        </>
      )}
      after={() => ({ destination: stored !== null && <SecretHint /> })}
    />
  );
}
