"""rivals"""
