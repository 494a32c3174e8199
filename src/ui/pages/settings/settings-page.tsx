// Settings of the gateway as a whole.
import { Alert, Text } from "@mantine/core";
import { formSchemaOf } from "../../../model/form-schema.ts" with { type: "macro" };
import type { Document } from "../../api/merge-patch.ts";
import { useMayChange, useRead, useStatus, type Versioned } from "../../api/queries.ts";
import type { Schemas } from "../../api/resources.ts";
import { useDocumentForm } from "../../parts/document-form.tsx";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { FormPage } from "../../parts/form-page.tsx";
import type { JsonSchema } from "../../parts/schema/shape.ts";
import { SchemaFields, schemaOptions } from "../../parts/schema-fields.tsx";
import { FormSkeleton } from "../../parts/skeletons.tsx";

type Settings = Schemas["Settings"];

const schema = formSchemaOf("settings") as JsonSchema;
const options = schemaOptions(schema);

export default function SettingsPage() {
  const settings = useRead<Settings>("settings");
  if (settings.data !== undefined) return <SettingsForm source={settings.data} />;
  if (settings.isPending) return <FormSkeleton />;
  return (
    <ErrorPanel
      error={settings.error}
      title="The settings cannot be shown"
      onRetry={() => settings.refetch()}
    />
  );
}

function SettingsForm({ source }: { readonly source: Versioned<Settings> }) {
  const { form, ...rest } = useDocumentForm<Settings, Document>({
    ...options,
    path: "settings",
    source,
    done: () => "Settings saved",
  });
  const mayChange = useMayChange("admin");
  return (
    <FormPage
      title="Gateway settings"
      text="Settings of the whole gateway. Changes take effect without a restart."
      form={rest}
      needs="admin"
      isNew={false}
    >
      <SchemaFields
        form={form}
        schema={schema}
        isStored
        isReadOnly={!mayChange}
        after={{
          management: (
            <AccessNote
              networks={form.values["admin_allowed_cidrs"] as readonly string[]}
              inEffect={source.value.admin_allowed_in_force}
            />
          ),
        }}
      />
    </FormPage>
  );
}

interface AccessProps {
  /** As entered. */
  readonly networks: readonly string[];
  /** Networks that may use the management API now. */
  readonly inEffect: readonly string[];
}

function AccessNote({ networks, inEffect }: AccessProps) {
  const isLocal = useStatus().data?.management_access === "local";
  if (networks.length > 0)
    return (
      <Alert color="yellow" py="xs">
        Include your own network. On the machine itself, 127.0.0.1 and ::1 need to be allowed too.
        There, <code>sluice reset-admin-networks</code> restores access.
      </Alert>
    );
  return (
    <Text size="sm" c="dimmed">
      {inEffect.length > 0 ? (
        <>
          In effect: <span className="mono">{inEffect.join(", ")}</span>
        </>
      ) : isLocal ? (
        "The gateway listens on loopback only, so no network is required."
      ) : (
        "No network is allowed, so other machines cannot reach it."
      )}
    </Text>
  );
}
