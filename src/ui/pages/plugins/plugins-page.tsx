// Plugins: the list, the gallery, and which form to open.
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { ResourceLoader } from "../../parts/form-page.tsx";
import { FormSkeleton } from "../../parts/skeletons.tsx";
import type { PageProps } from "../../pages.ts";
import { useSearchParams } from "wouter";
import { PluginForm } from "./plugin-form.tsx";
import { PluginGallery } from "./plugin-gallery.tsx";
import { PluginList } from "./plugin-list.tsx";
import { usePluginSchemas } from "./plugin-schemas.ts";

export default function PluginsPage({ id }: PageProps) {
  const [search] = useSearchParams();
  const chosen = search.get("plugin");
  if (id === null) return <PluginList />;
  if (id === "new" && chosen === null && search.get("from") === null) return <PluginGallery />;
  return <Opened key={`${id} ${chosen}`} id={id} chosen={chosen} />;
}

function Opened({ id, chosen }: { readonly id: string; readonly chosen: string | null }) {
  const schemas = usePluginSchemas();
  if (schemas.isPending) return <FormSkeleton />;
  if (schemas.data === undefined)
    return <ErrorPanel error={schemas.error} onRetry={() => schemas.refetch()} />;
  const { value } = schemas.data;
  return (
    <ResourceLoader resource="plugins" id={id}>
      {(start) => {
        const name = start.source?.value.name ?? start.template.name ?? chosen;
        const schema = value.find((each) => each.name === name);
        if (schema === undefined)
          return <ErrorPanel error={new Error(`There is no plugin called ${name}.`)} />;
        return <PluginForm {...start} schema={schema} />;
      }}
    </ResourceLoader>
  );
}
