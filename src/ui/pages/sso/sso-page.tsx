// Single sign-on with OpenID Connect; knows no other page.
import { JsonDocumentPage } from "../../parts/json-document-page.tsx";

export default function SsoPage() {
  return (
    <JsonDocumentPage
      path="sso"
      title="Single sign-on"
      text="Let people sign in with your identity provider (OpenID Connect)."
    />
  );
}
