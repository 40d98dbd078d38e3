# SPDX-License-Identifier: Apache-2.0
"""Flat tensor programs (see ``roundel.lower``) to target languages."""
