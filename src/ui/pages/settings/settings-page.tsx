// Settings of the gateway as a whole; puts the groups of fields together and asks before one shuts oneself out.
import { List, Stack, Text } from "@mantine/core";
import type { UseFormReturnType } from "@mantine/form";
import { modals } from "@mantine/modals";
import { useConnection } from "../../api/connection-context.ts";
import { isSame } from "../../api/merge-patch.ts";
import { useRead, type Versioned } from "../../api/queries.ts";
import type { Schemas } from "../../api/resources.ts";
import { useDocumentForm } from "../../parts/document-form.tsx";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { FormPage } from "../../parts/form-page.tsx";
import { FormSkeleton } from "../../parts/skeletons.tsx";
import { ManagementFields, ProxyFields } from "./access-fields.tsx";
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
  const confirm = useLockOutPrompt();
  const { form, ...rest } = useDocumentForm<Settings, SettingsValues>({
    path: "settings",
    ...{ source, toValues, toBody, validate: rules, confirm },
    done: "Settings saved",
  });
  return (
    <FormPage
      title="Gateway settings"
      text="What holds for the gateway as a whole. Changes are live at once, without a restart."
      form={rest}
      needs="admin"
      isNew={false}
    >
      <ManagementFields form={form} />
      <ProxyFields form={form} />
      <DefaultSiteFields form={form} />
      <RequestFields form={form} />
      <RetentionFields form={form} />
      <GeoFields form={form} />
      <LimitFields form={form} />
    </FormPage>
  );
}

/** Asks before other networks than before may use the management API: afterwards it is too late. */
function useLockOutPrompt() {
  const connection = useConnection();
  return async (values: SettingsValues, stored: SettingsValues): Promise<boolean> => {
    const { admin_allowed_cidrs: cidrs } = values;
    if (cidrs.length === 0 || isSame(cidrs, stored.admin_allowed_cidrs)) return true;
    const own = await connection
      .send<readonly Schemas["Session"][]>("/auth/sessions")
      .then(({ value }) => value.find(({ current }) => current)?.address ?? null)
      // While there are no users there are no sessions.
      .catch(() => null);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    modals.openConfirmModal({
      title: "Refuse everybody else?",
      children: (
        <Stack gap="xs">
          <Text size="sm">Only clients from these networks can use this UI and the API:</Text>
          <List size="sm" className="mono">
            {cidrs.map((cidr) => (
              <List.Item key={cidr}>{cidr}</List.Item>
            ))}
          </List>
          <Text size="sm">
            {own === null ? "Make sure that your own address is in one of them." : ownAddress(own)}
          </Text>
        </Stack>
      ),
      labels: { confirm: "Save and refuse others", cancel: "Back to the form" },
      confirmProps: { color: "red" },
      onConfirm: () => resolve(true),
      onClose: () => resolve(false),
    });
    return await promise;
  };
}

const ownAddress = (address: string): string =>
  `You signed in from ${address}. If that is in none of them, you are shut out the moment you save, and can come back from one of them only.`;
