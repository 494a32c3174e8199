// DNS providers: how names are proved with records; the list, and which form to open.
import { Text } from "@mantine/core";
import { ResourceLoader } from "../../parts/form-page.tsx";
import { ResourceTable } from "../../parts/resource-table.tsx";
import type { PageProps } from "../../pages.ts";
import { ProviderForm, useProviderTypes } from "./provider-form.tsx";

export default function DnsProvidersPage({ id }: PageProps) {
  if (id === null) return <ProviderList />;
  return (
    <ResourceLoader resource="dns-providers" id={id}>
      {(start) => <ProviderForm key={id} {...start} />}
    </ResourceLoader>
  );
}

function ProviderList() {
  return (
    <ResourceTable
      resource="dns-providers"
      page="dns-providers"
      title="DNS providers"
      text="Where records are written that prove a name, as wildcard certificates need."
      columns={[
        { title: "Provider", render: ({ type }) => <Title type={type} /> },
        {
          title: "Zones",
          render: ({ zones }) =>
            zones.length > 0 ? (
              zones.join(", ")
            ) : (
              <Text size="sm" c="dimmed">
                those that it finds
              </Text>
            ),
        },
      ]}
      empty={{
        title: "No providers yet",
        text: "You need one for wildcard certificates, and for names that nobody reaches on port 80. Say who serves your zone, and give the gateway a token for it.",
      }}
    />
  );
}

function Title({ type }: { readonly type: string }) {
  return useProviderTypes().find((one) => one.type === type)?.title ?? type;
}
