// Settings of the gateway as a whole; knows no other page.
import { JsonDocumentPage } from "../../parts/json-document-page.tsx";

export default function SettingsPage() {
  return (
    <JsonDocumentPage
      path="settings"
      title="Gateway settings"
      text="Trusted proxies, who may reach this page, the default site, limits and retention."
    />
  );
}
