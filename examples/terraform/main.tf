# Objects of a Sluice gateway with the REST provider, which needs no provider of its own for Sluice.
#
#   export TF_VAR_sluice_token=...
#   terraform init && terraform apply
#
# Sluice's tests do not run this file: providers come from a registry.

terraform {
  required_version = ">= 1.5"
  required_providers {
    restapi = {
      source  = "Mastercard/restapi"
      version = "~> 2.0"
    }
  }
}

variable "sluice_url" {
  type        = string
  default     = "http://127.0.0.1:9080"
  description = "URL of the management API"
}

variable "sluice_token" {
  type        = string
  sensitive   = true
  description = "The admin token or a token with the role editor"
}

provider "restapi" {
  uri                  = "${var.sluice_url}/api/v1"
  headers              = { Authorization = "Bearer ${var.sluice_token}" }
  write_returns_object = true # POST and PUT return the object with its id
  update_method        = "PUT"
  id_attribute         = "id"
}

resource "restapi_object" "web" {
  path = "/services"
  data = jsonencode({
    name      = "web"
    algorithm = "least_connections"
    targets = [
      { host = "10.0.0.5", port = 3000 },
      { host = "10.0.0.6", port = 3000 },
    ]
  })
  # Objects have defaults and read-only fields that are not written here.
  ignore_server_additions = true
}

resource "restapi_object" "shop" {
  path = "/routes"
  data = jsonencode({
    name       = "shop"
    service_id = restapi_object.web.id
    hosts      = ["shop.example.com"]
  })
  ignore_server_additions = true
}

resource "restapi_object" "shop_limit" {
  path = "/plugins"
  data = jsonencode({
    name     = "rate-limit"
    label    = "shop-limit"
    route_id = restapi_object.shop.id
    config   = { limits = [{ requests = 100, window = 60 }] }
  })
  ignore_server_additions = true
}
