// Settings of the gateway as a whole; puts the groups of fields together.
import type { UseFormReturnType } from "@mantine/form";
import { useRead, type Versioned } from "../../api/queries.ts";
import type { Schemas } from "../../api/resources.ts";
import { useDocumentForm } from "../../parts/document-form.tsx";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { FormPage } from "../../parts/form-page.tsx";
import { FormSkeleton } from "../../parts/skeletons.tsx";
import { ManagementFields, ProxyFields } from "./access-fields.tsx";
import { FleetFields } from "./fleet-fields.tsx";
import { LimitFields } from "./limit-fields.tsx";
import { rules, type SettingsValues, toBody, toValues } from "./settings-values.ts";
import { DefaultSiteFields, GeoFields, RequestFields, RetentionFields } from "./traffic-fields.tsx";

type Settings = Schemas["Settings"];

export interface SettingsFieldsProps {
  readonly form: UseFormReturnType<SettingsValues>;
}

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
  const { form, ...rest } = useDocumentForm<Settings, SettingsValues>({
    path: "settings",
    source,
    toValues,
    toBody,
    validate: rules,
    done: () => "Settings saved",
  });
  return (
    <FormPage
      title="Gateway settings"
      text="Settings of the whole gateway. Changes take effect without a restart."
      form={rest}
      needs="admin"
      isNew={false}
    >
      <ManagementFields form={form} inEffect={source.value.admin_allowed_in_force} />
      <ProxyFields form={form} />
      <DefaultSiteFields form={form} />
      <RequestFields form={form} />
      <RetentionFields form={form} />
      <GeoFields form={form} />
      <LimitFields form={form} />
      <FleetFields form={form} />
    </FormPage>
  );
}
